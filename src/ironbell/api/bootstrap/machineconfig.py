"""Settings of a KubeadmConfig for the machine besides kubeadm: files, users, disks, time.

Source: kubernetes-sigs/cluster-api: api/bootstrap/kubeadm/v1beta2.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import field

from ironbell.api.crd.markers import Int32, Rule, Schema, Text253, Text256, Text512, Text10240, required
from ironbell.api.meta import Model


class Encoding(StrEnum):
    """Encoding of a file's content."""

    BASE64 = "base64"
    GZIP = "gzip"
    GZIP_BASE64 = "gzip+base64"


class FileContentFormat(StrEnum):
    """Format of a file's content: plain, or a template."""

    RAW = "Raw"
    TEMPLATE = "Template"


class Format(StrEnum):
    """Formats of user data."""

    CLOUD_CONFIG = "cloud-config"
    IGNITION = "ignition"


class SecretKeyReference(Model, frozen=True):
    """One key of a Secret in the same namespace."""

    name: Text253 = required(str)
    key: Text256 = required(str)


class SecretSource(Model, frozen=True):
    """Content that a Secret holds."""

    secret: SecretKeyReference = required(SecretKeyReference)


class File(Model, frozen=True):
    """A file that is written before kubeadm runs."""

    path: Text512 = required(str)
    owner: Text256 = ""
    permissions: Annotated[str, Schema(min_length=1, max_length=16)] = ""
    encoding: Annotated[str, Schema(enum=tuple(Encoding))] = ""
    append: bool | None = None
    content: Text10240 = ""
    content_from: SecretSource = SecretSource()
    content_format: Annotated[str, Schema(enum=tuple(FileContentFormat))] = ""


class PartitionSpec(Model, frozen=True):
    """One partition of a disk."""

    percentage: Annotated[Int32, Schema(minimum=1, maximum=100)] = required(int)
    partition_type: Annotated[
        str,
        Schema(
            min_length=1,
            max_length=36,
            rules=(
                Rule(
                    (
                        "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-F"
                        "a-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')"
                    ),
                    (
                        "partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, "
                        "LinuxExtended or a full GPT partition GUID"
                    ),
                ),
            ),
        ),
    ] = ""


class Partition(Model, frozen=True):
    """The partitions of one disk."""

    schema_ = Schema(
        rules=(
            Rule(
                "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1",
                "exactly one of the fields in [layout diskLayout] must be set",
            ),
        )
    )

    device: Text256 = required(str)
    layout: bool | None = None
    overwrite: bool | None = None
    table_type: Annotated[str, Schema(enum=("mbr", "gpt"))] = ""
    disk_layout: Annotated[list[PartitionSpec], Schema(min_items=1, max_items=100, list_type="atomic")] = []


class Filesystem(Model, frozen=True):
    """One file system."""

    device: Text256 = required(str)
    filesystem: Annotated[str, Schema(min_length=1, max_length=128)] = required(str)
    label: Text512 = ""
    partition: Annotated[str, Schema(min_length=1, max_length=128)] = ""
    overwrite: bool | None = None
    replace_fs: Annotated[str, Schema(min_length=1, max_length=128)] = field(default="", name="replaceFS")
    extra_opts: Annotated[list[Text256], Schema(max_items=100, list_type="atomic")] = []


class DiskSetup(Model, frozen=True):
    """Partitions and file systems that cloud-init makes."""

    schema_ = Schema(min_properties=1)

    partitions: Annotated[list[Partition], Schema(max_items=100, list_type="atomic")] = []
    filesystems: Annotated[list[Filesystem], Schema(max_items=100, list_type="atomic")] = []


class User(Model, frozen=True):
    """A user of the machine."""

    name: Text256 = required(str)
    gecos: Text256 = ""
    groups: Text256 = ""
    home_dir: Text256 = ""
    inactive: bool | None = None
    shell: Text256 = ""
    passwd: Text256 = ""
    passwd_from: SecretSource = SecretSource()
    primary_group: Text256 = ""
    lock_password: bool | None = None
    sudo: Text256 = ""
    ssh_authorized_keys: Annotated[
        list[Annotated[str, Schema(min_length=1, max_length=2048)]], Schema(max_items=100, list_type="atomic")
    ] = []


class Ntp(Model, frozen=True):
    """Time servers."""

    schema_ = Schema(min_properties=1)

    servers: Annotated[list[Text512], Schema(max_items=100, list_type="atomic")] = []
    enabled: bool | None = None


class ContainerLinuxConfig(Model, frozen=True):
    """Configuration that is merged into the generated one."""

    schema_ = Schema(min_properties=1)

    additional_config: Annotated[str, Schema(min_length=1, max_length=32768)] = ""
    strict: bool | None = None


class IgnitionSpec(Model, frozen=True):
    """Settings for Ignition only."""

    schema_ = Schema(min_properties=1)

    container_linux_config: ContainerLinuxConfig = ContainerLinuxConfig()
