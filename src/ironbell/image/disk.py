"""Disk images without loop devices: a partition table, two boot loaders and two file systems in one sparse file.

The layout serves both firmwares: an EFI system partition, a BIOS boot partition and the root file system, which comes
last so that it can grow. The boot loaders are put in place by hand, byte for byte where `grub-bios-setup` would.

Failure modes: `BuildError` of the program that failed.

Sources: UEFI specification 2.10 section 5 (GPT); GRUB: grub-core/boot/i386/pc/boot.S and diskboot.S,
include/grub/i386/pc/boot.h (offsets), util/setup.c; mke2fs(8), mtools(1).
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from ironbell.image.debian import BuildError, run

SECTOR = 512
MIB = 1 << 20
# FAT32 needs 65525 clusters; of one sector each that is a little over 32 MiB.
_ESP_MIB, _BIOS_BOOT_MIB, _START_MIB = 40, 1, 1
# Room for the second copy of the partition table, rounded up.
_TAIL_MIB = 1

_BOOT_KERNEL_SECTOR = 0x5C
_BOOT_DRIVE_CHECK = 0x66
_NO_OPERATION_TWICE = b"\x90\x90"
# The last block list of diskboot.img: first sector, count, and the segment that the rest is loaded to.
_DISKBOOT_BLOCK_LIST = struct.Struct("<QHH")
_DISKBOOT_SEGMENT = 0x820

ROOT_PARTITION, ESP_PARTITION = 3, 1


@dataclass(frozen=True, slots=True)
class Partition:
    """A range of the disk, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Partitions of the disk, and the identities that are derived from the build's inputs."""

    size: int
    esp: Partition
    bios_boot: Partition
    root: Partition
    disk_id: str
    root_id: str


def layout(root_mib: int, *, seed: str) -> Layout:
    """Partitions around a root file system of a size; equal seeds give equal identifiers."""
    space = uuid.uuid5(uuid.NAMESPACE_URL, f"ironbell:image:{seed}")
    esp = Partition(_START_MIB * MIB, _ESP_MIB * MIB)
    bios_boot = Partition(esp.offset + esp.size, _BIOS_BOOT_MIB * MIB)
    root = Partition(bios_boot.offset + bios_boot.size, root_mib * MIB)
    return Layout(
        size=root.offset + root.size + _TAIL_MIB * MIB,
        esp=esp,
        bios_boot=bios_boot,
        root=root,
        disk_id=str(uuid.uuid5(space, "disk")),
        root_id=str(uuid.uuid5(space, "root")),
    )


def partition(image: Path, shape: Layout) -> None:
    """Create the sparse file and its partition table."""
    with image.open("wb") as stream:
        stream.truncate(shape.size)
    lines = ["label: gpt", f"label-id: {shape.disk_id}", "unit: sectors"]
    for part, kind, name in (
        (shape.esp, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B", "esp"),
        (shape.bios_boot, "21686148-6449-6E6F-744E-656564454649", "bios"),
        (shape.root, "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709", "root"),
    ):
        lines.append(f'start={part.offset // SECTOR}, size={part.size // SECTOR}, type={kind}, name="{name}"')
    run(["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", str(image)], stdin="\n".join(lines) + "\n")


def write_root(image: Path, shape: Layout, tree: Path) -> None:
    """Create the root file system with a tree's content. Its features are those that GRUB 2.06 can read."""
    options = f"offset={shape.root.offset},lazy_itable_init=0,lazy_journal_init=0,nodiscard,root_owner=0:0"
    run([
        "mke2fs", "-q", "-F", "-t", "ext4", "-L", "root", "-U", shape.root_id, "-m", "1", "-i", "8192",
        "-O", "^metadata_csum_seed,^orphan_file", "-J", "size=16", "-E", options, "-d", str(tree), str(image),
        f"{shape.root.size // 1024}k",
    ])  # fmt: skip


def write_esp(image: Path, shape: Layout, loader: Path) -> None:
    """Create the EFI system partition with one loader at the path that firmware tries on any disk."""
    esp = image.with_suffix(".esp")
    with esp.open("wb") as stream:
        stream.truncate(shape.esp.size)
    volume = shape.disk_id.replace("-", "")[:8]
    try:
        run(["mkfs.vfat", "-F", "32", "-s", "1", "-n", "ESP", "-i", volume, str(esp)])
        run(["mmd", "-i", str(esp), "::EFI", "::EFI/BOOT"])
        run(["mcopy", "-i", str(esp), str(loader), "::EFI/BOOT/BOOTX64.EFI"])
        _put(image, shape.esp.offset, esp.read_bytes())
    finally:
        esp.unlink(missing_ok=True)


def write_bios_loader(image: Path, shape: Layout, *, boot: bytes, core: bytes) -> None:
    """Put GRUB's first sector and its core image where BIOS firmware starts them.

    Raises:
        BuildError: the core image does not fit its partition.
    """
    if len(core) > shape.bios_boot.size:
        raise BuildError(f"GRUB's core image has {len(core)} bytes, its partition {shape.bios_boot.size}")
    first = shape.bios_boot.offset // SECTOR
    _put(image, 0, boot_sector(boot, core_sector=first)[:440])
    _put(image, shape.bios_boot.offset, core_image(core, first_sector=first))


def boot_sector(boot: bytes, *, core_sector: int) -> bytes:
    """GRUB's `boot.img` with the sector of the core image; assumes a hard disk, as GRUB's installer does."""
    patched = bytearray(boot)
    struct.pack_into("<Q", patched, _BOOT_KERNEL_SECTOR, core_sector)
    patched[_BOOT_DRIVE_CHECK : _BOOT_DRIVE_CHECK + 2] = _NO_OPERATION_TWICE
    return bytes(patched)


def core_image(core: bytes, *, first_sector: int) -> bytes:
    """GRUB's core image, with the position of its other sectors patched into the first one."""
    patched = bytearray(core + b"\0" * (-len(core) % SECTOR))
    count = len(patched) // SECTOR - 1
    at = SECTOR - _DISKBOOT_BLOCK_LIST.size
    _DISKBOOT_BLOCK_LIST.pack_into(patched, at, first_sector + 1, count, _DISKBOOT_SEGMENT)
    return bytes(patched)


def _put(image: Path, offset: int, data: bytes) -> None:
    """Write data into the image, leaving blocks of zeros as holes."""
    with image.open("r+b") as stream:
        for start in range(0, len(data), 4096):
            block = data[start : start + 4096]
            if block.count(0) != len(block):
                stream.seek(offset + start)
                stream.write(block)
