"""The storage layout in a machine's metadata, and the programs that create it. Pure: nothing is run here.

Layout: `metadata.instance.storage` with `disks`, `filesystems` and `volume_groups`. Sizes count sectors of 512 bytes
independently of the disk's own size; a size of 0 takes the rest.

Source: tinkerbell/actions: rootio; sfdisk(8), input formats; UEFI specification, section 5.3.3.
"""

from __future__ import annotations

import msgspec

from ironbell.agent.actions.context import ActionError

SECTOR = 512
_FIRST_SECTOR = 2048
_GPT_TYPES = {
    "SWAP": "0657FD6D-A4AB-43C4-84E5-0933C84B4F4F",
    "BIOS": "21686148-6449-6E6F-744E-656564454649",
    "EFI": "C12A7328-F81F-11D2-BA4B-00A0C93EC93B",
}
_GPT_LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
_MBR_TYPES = {"LINUX": "83", "LINUX_ACTIVE": "83", "FAT32": "c", "FAT32_ACTIVE": "c", "SWAP": "82"}
_MBR_PRIMARY = 4
FORMATS = ("ext2", "ext3", "ext4", "swap", "vfat", "xfs")


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition; number 0 means the next one."""

    label: str = ""
    number: int = 0
    size: int = 0
    start: int = 0
    type_guid: str = ""


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    """A disk to partition."""

    device: str
    wipe_table: bool = False
    partitions: list[Partition] | None = None


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """Options for creating a file system."""

    force: bool = False
    options: list[str] | None = None


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A file system: its device, its type, its mount point."""

    device: str
    format: str = ""
    point: str = ""
    create: Create | None = None


class Filesystem(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list of file systems."""

    mount: Mount


class LogicalVolume(msgspec.Struct, frozen=True, kw_only=True):
    """One logical volume; size 0 takes the rest of the group."""

    name: str
    size: int = 0
    tags: list[str] | None = None
    opts: list[str] | None = None


class VolumeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One volume group with its volumes."""

    name: str
    physical_volumes: list[str]
    tags: list[str] | None = None
    logical_volumes: list[LogicalVolume] | None = None


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that rootio acts on."""

    disks: list[Disk] | None = None
    filesystems: list[Filesystem] | None = None
    volume_groups: list[VolumeGroup] | None = None


class _Instance(msgspec.Struct, frozen=True, kw_only=True):
    storage: Storage | None = None


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    instance: _Instance | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _Metadata | None = None


def parse(body: bytes) -> Storage:
    """The storage part of a metadata document.

    Raises:
        ActionError: the document is not metadata, or describes no storage.
    """
    try:
        document = msgspec.convert(msgspec.json.decode(body), _Document, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ActionError(f"the metadata cannot be read: {error}") from error
    instance = document.metadata.instance if document.metadata else None
    if instance is None or instance.storage is None:
        raise ActionError("the metadata has no metadata.instance.storage; add it to the Hardware")
    return instance.storage


def partition_script(disk: Disk, *, mbr: bool, sector_size: int) -> str:
    """The input of sfdisk for one disk.

    Raises:
        ActionError: the partitions cannot be laid out.
    """
    lines = [f"label: {'dos' if mbr else 'gpt'}", "unit: sectors"]
    used: set[int] = set()
    following = 1
    position = _sectors(_FIRST_SECTOR, sector_size)
    ends_open = False
    for partition in disk.partitions or []:
        number = partition.number or following
        if number in used or (mbr and number > _MBR_PRIMARY) or number < 1:
            raise ActionError(f"{disk.device}: partition number {number} is used twice or not possible")
        if ends_open:
            raise ActionError(f"{disk.device}: no partition can follow the one whose size is 0")
        used.add(number)
        following = number + 1
        start = _sectors(partition.start, sector_size) if partition.start else position
        fields = [f"start={start}"]
        if partition.size:
            size = _sectors(partition.size, sector_size)
            fields.append(f"size={size}")
            position = start + size
        else:
            ends_open = True
        fields += _kind(partition, mbr=mbr)
        lines.append(f"{number} : {', '.join(fields)}")
    return "\n".join(lines) + "\n"


def _sectors(count: int, sector_size: int) -> int:
    """Sectors of 512 bytes as sectors of the disk, rounded up."""
    if count < 0:
        raise ActionError("partition starts and sizes must not be negative")
    return -(-count * SECTOR // sector_size)


def _kind(partition: Partition, *, mbr: bool) -> list[str]:
    label = partition.label.upper()
    if mbr:
        active = ["bootable"] if label.endswith("_ACTIVE") else []
        return [f"type={_MBR_TYPES.get(label, '83')}", *active]
    name = "".join(character for character in partition.label if character.isprintable() and character not in '",\\')
    kind = partition.type_guid or _GPT_TYPES.get(label, _GPT_LINUX)
    if any(character not in "0123456789abcdefABCDEF-" for character in kind):
        raise ActionError(f"partition type {kind!r} is not a GUID")
    return [f"type={kind}", f'name="{name[:36]}"']


def format_command(mount: Mount) -> list[str]:
    """The program that creates a file system.

    Raises:
        ActionError: the format is unknown.
    """
    options = (mount.create.options if mount.create else None) or []
    match mount.format:
        case "swap":
            return ["mkswap", mount.device]
        case "ext2" | "ext3" | "ext4":
            return [f"mkfs.{mount.format}", "-F", *options, mount.device]
        case "vfat":
            return ["mkfs.vfat", *options, mount.device]
        case "xfs":
            return ["mkfs.xfs", "-f", *options, mount.device]
    raise ActionError(f"{mount.device}: format {mount.format!r} is not one of {', '.join(FORMATS)}")


def volume_commands(group: VolumeGroup) -> list[list[str]]:
    """The programs that create a volume group and its volumes."""
    commands = [["pvcreate", "--yes", "--force", volume] for volume in group.physical_volumes]
    commands.append(["vgcreate", *_tags(group.tags), group.name, *group.physical_volumes])
    for volume in group.logical_volumes or []:
        size = ["--size", f"{volume.size * SECTOR}b"] if volume.size else ["--extents", "100%FREE"]
        options = volume.opts or []
        commands.append(["lvcreate", "--yes", "--name", volume.name, *size, *_tags(volume.tags), *options, group.name])
    return commands


def _tags(tags: list[str] | None) -> list[str]:
    return [word for tag in tags or [] for word in ("--addtag", tag)]
