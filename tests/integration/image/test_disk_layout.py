"""A disk written by hand, read back by the tools of others."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from ironbell.image import disk
from support.skips import needs_program

NEEDED = ("sfdisk", "mke2fs", "debugfs", "mkfs.vfat", "mcopy", "e2fsck")
MISSING = [tool for tool in NEEDED if shutil.which(tool) is None]

pytestmark = needs_program(*NEEDED)


@pytest.fixture
def image(tmp_path: Path) -> tuple[Path, disk.Layout]:
    tree = tmp_path / "tree"
    (tree / "etc").mkdir(parents=True)
    (tree / "etc/hostname").write_text("node\n")
    (tmp_path / "loader").write_bytes(b"MZ" + bytes(1000))
    shape = disk.layout(96, seed="test")
    path = tmp_path / "disk.raw"
    disk.partition(path, shape)
    disk.write_root(path, shape, tree)
    disk.write_esp(path, shape, tmp_path / "loader")
    disk.write_bios_loader(path, shape, boot=b"\xeb\x63" + bytes(510), core=b"\1" * 30000)
    return path, shape


def test_the_partition_table_is_valid_and_protects_the_boot_code(image: tuple[Path, disk.Layout]) -> None:
    path, _shape = image
    verdict = subprocess.run(["sfdisk", "--verify", str(path)], capture_output=True, text=True, check=True)
    assert "No errors detected" in verdict.stdout
    table = msgspec.json.decode(subprocess.run(["sfdisk", "-J", str(path)], capture_output=True, check=True).stdout)
    assert [part["name"] for part in table["partitiontable"]["partitions"]] == ["esp", "bios", "root"]
    first = path.read_bytes()[:512]
    assert first[:2] == b"\xeb\x63"
    assert first[510:] == b"\x55\xaa"


def test_the_root_file_system_is_clean_and_holds_the_tree(image: tuple[Path, disk.Layout]) -> None:
    path, shape = image
    place = f"{path}?offset={shape.root.offset}"
    checked = subprocess.run(["e2fsck", "-fn", place], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    shown = subprocess.run(["debugfs", "-R", "cat /etc/hostname", place], capture_output=True, text=True, check=True)
    assert shown.stdout == "node\n"


def test_the_efi_partition_holds_the_loader_where_firmware_looks(image: tuple[Path, disk.Layout]) -> None:
    path, shape = image
    place = f"{path}@@{shape.esp.offset}"
    read = subprocess.run(["mcopy", "-i", place, "::EFI/BOOT/BOOTX64.EFI", "-"], capture_output=True, check=True)
    assert read.stdout == b"MZ" + bytes(1000)


def test_what_is_empty_takes_no_room(image: tuple[Path, disk.Layout]) -> None:
    path, shape = image
    assert path.stat().st_blocks * 512 < shape.size / 3
