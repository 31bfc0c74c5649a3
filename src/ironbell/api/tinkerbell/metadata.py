"""The metadata of a Hardware: what the metadata service and templates know of the machine and its installed system.

All names are snake_case on the wire, as upstream has them.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/hardware.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Int64, Schema
from ironbell.api.meta import SnakeModel


class Manufacturer(SnakeModel, frozen=True):
    """Manufacturer of the machine."""

    id: Annotated[str, Schema("Identifier of the maker.")] = ""
    slug: Annotated[str, Schema("Short name of the maker.")] = ""


class OperatingSystem(SnakeModel, frozen=True):
    """An operating system, for programs that ask the metadata service."""

    slug: Annotated[str, Schema("Short name, such as ubuntu_24_04.")] = ""
    distro: Annotated[str, Schema("Name of the distribution.")] = ""
    version: Annotated[str, Schema("Version of the distribution.")] = ""
    image_tag: Annotated[str, Schema("Tag of the image it was installed from.")] = ""
    os_slug: Annotated[str, Schema("Older form of slug.")] = ""


class InstanceIp(SnakeModel, frozen=True):
    """One address of the installed system."""

    address: Annotated[str, Schema("IPv4 or IPv6 address.")] = ""
    netmask: Annotated[str, Schema("Netmask of the address.")] = ""
    gateway: Annotated[str, Schema("Gateway of the address.")] = ""
    family: Annotated[Int64, Schema("4 or 6.")] = 0
    public: Annotated[bool, Schema("The address is reachable from outside.")] = False
    management: Annotated[bool, Schema("The address is for management.")] = False


class Partition(SnakeModel, frozen=True):
    """One partition to make."""

    label: Annotated[str, Schema("Label of the partition.")] = ""
    number: Annotated[Int64, Schema("Number of the partition, from 1.")] = 0
    size: Annotated[Int64, Schema("Size in sectors; 0 is all that is left.")] = 0
    start: Annotated[Int64, Schema("First sector.")] = 0
    type_guid: Annotated[str, Schema("GPT type.")] = ""


class StorageDisk(SnakeModel, frozen=True):
    """One disk to partition."""

    device: Annotated[str, Schema("Device path.")] = ""
    wipe_table: Annotated[bool, Schema("Remove an existing partition table.")] = False
    partitions: Annotated[list[Partition], Schema("Partitions to make.")] = []


class Raid(SnakeModel, frozen=True):
    """One software RAID to make."""

    name: Annotated[str, Schema("Name of the array.")] = ""
    level: Annotated[str, Schema("RAID level.")] = ""
    devices: Annotated[list[str], Schema("Member devices.")] = []
    spare: Annotated[Int64, Schema("Number of spare members.")] = 0


class File(SnakeModel, frozen=True):
    """One file to write into a file system."""

    path: Annotated[str, Schema("Path of the file.")] = ""
    contents: Annotated[str, Schema("Text of the file.")] = ""
    mode: Annotated[Int64, Schema("Permission bits.")] = 0
    uid: Annotated[Int64, Schema("Owner.")] = 0
    gid: Annotated[Int64, Schema("Group.")] = 0


class FilesystemOptions(SnakeModel, frozen=True):
    """Options of a new file system."""

    force: Annotated[bool, Schema("Overwrite an existing file system.")] = False
    options: Annotated[list[str], Schema("Further arguments of mkfs.")] = []


class Mount(SnakeModel, frozen=True):
    """A file system on a device, and where it is mounted."""

    device: Annotated[str, Schema("Device path.")] = ""
    format: Annotated[str, Schema("Type of the file system.")] = ""
    point: Annotated[str, Schema("Mount point.")] = ""
    files: Annotated[list[File], Schema("Files to write into it.")] = []
    create: Annotated[FilesystemOptions | None, Schema("Options of the new file system.")] = None


class Filesystem(SnakeModel, frozen=True):
    """One file system to make."""

    mount: Annotated[Mount | None, Schema("Device, type and mount point.")] = None


class Storage(SnakeModel, frozen=True):
    """Disk layout for the rootio action."""

    disks: Annotated[list[StorageDisk], Schema("Disks to partition.")] = []
    raid: Annotated[list[Raid], Schema("Software RAIDs to make.")] = []
    filesystems: Annotated[list[Filesystem], Schema("File systems to make.")] = []


class Instance(SnakeModel, frozen=True):
    """The installed system."""

    id: Annotated[str, Schema("Identifier that the metadata service gives as instance-id.")] = ""
    state: Annotated[str, Schema("State of the instance, for outside programs.")] = ""
    hostname: Annotated[str, Schema("Host name that the metadata service gives.")] = ""
    allow_pxe: Annotated[bool, Schema("Not used: see netboot.allowPXE of the interface.")] = False
    rescue: Annotated[bool, Schema("The instance is in rescue mode, for outside programs.")] = False
    operating_system: Annotated[OperatingSystem | None, Schema("Operating system to report.")] = None
    always_pxe: Annotated[bool, Schema("Not used: see netboot.allowPXE of the interface.")] = False
    ipxe_script_url: Annotated[str, Schema("Not used: see netboot.ipxe.url of the interface.")] = ""
    ips: Annotated[list[InstanceIp], Schema("Addresses that the metadata service gives.")] = []
    userdata: Annotated[str, Schema("Not used: see userData of the spec.")] = ""
    crypted_root_password: Annotated[str, Schema("Hash of the root password.")] = ""
    tags: Annotated[list[str], Schema("Tags that the metadata service gives.")] = []
    storage: Annotated[Storage | None, Schema("Disk layout.")] = None
    ssh_keys: Annotated[list[str], Schema("Public SSH keys.")] = []
    network_ready: Annotated[bool, Schema("The network is set up, for outside programs.")] = False


class Custom(SnakeModel, frozen=True):
    """Data for outside programs."""

    preinstalled_operating_system_version: Annotated[
        OperatingSystem | None, Schema("Operating system that came with the machine.")
    ] = None
    private_subnets: Annotated[list[str], Schema("Private networks of the site.")] = []


class Facility(SnakeModel, frozen=True):
    """Location of the machine, and the plan that it is sold as."""

    plan_slug: Annotated[str, Schema("Short name of the machine's class.")] = ""
    plan_version_slug: Annotated[str, Schema("Short name of the class's version.")] = ""
    facility_code: Annotated[str, Schema("Site; the boot script passes it on.")] = ""


class HardwareMetadata(SnakeModel, frozen=True):
    """Metadata of the machine for the metadata service and templates."""

    state: Annotated[str, Schema("State of the machine, for outside programs.")] = ""
    bonding_mode: Annotated[Int64, Schema("Linux bonding mode of one bond of all cards, for network-config.")] = 0
    manufacturer: Annotated[Manufacturer | None, Schema("Manufacturer of the machine.")] = None
    instance: Annotated[Instance | None, Schema("The installed system.")] = None
    custom: Annotated[Custom | None, Schema("Data for outside programs.")] = None
    facility: Annotated[Facility | None, Schema("Where the machine stands.")] = None
