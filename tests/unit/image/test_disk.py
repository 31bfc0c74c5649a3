"""Where things lie on a disk image, and what the boot loaders are told."""

from __future__ import annotations

import struct
from pathlib import Path

from ironbell.codec import goyaml
from ironbell.image import system
from ironbell.image.contents import SSH_MODULES
from ironbell.image.disk import MIB, SECTOR, boot_sector, core_image, layout
from ironbell.image.system import without_modules


def test_partitions_follow_each_other_and_the_root_comes_last() -> None:
    shape = layout(500, seed="x")
    assert shape.esp.offset == MIB
    assert shape.bios_boot.offset == shape.esp.offset + shape.esp.size
    assert shape.root.offset == shape.bios_boot.offset + shape.bios_boot.size
    assert shape.size >= shape.root.offset + shape.root.size + 33 * SECTOR


def test_identities_follow_from_the_inputs() -> None:
    assert layout(1, seed="x").root_id == layout(900, seed="x").root_id
    assert layout(1, seed="x").root_id != layout(1, seed="y").root_id
    assert layout(1, seed="x").disk_id != layout(1, seed="x").root_id


def test_the_boot_sector_is_told_where_the_core_begins() -> None:
    patched = boot_sector(bytes(512), core_sector=83968)
    assert struct.unpack_from("<Q", patched, 0x5C) == (83968,)
    assert patched[0x66:0x68] == b"\x90\x90"
    assert len(patched) == 512


def test_the_core_is_told_where_its_rest_lies() -> None:
    patched = core_image(b"\1" * 1500, first_sector=100)
    assert len(patched) == 1536
    assert struct.unpack_from("<QHH", patched, 500) == (101, 2, 0x820)


def test_an_image_without_ssh_does_not_ask_for_its_keys() -> None:
    settings = (Path(system.__file__).parent / "files/overlay/etc/cloud/cloud.cfg").read_text()
    trimmed = goyaml.load(without_modules(settings, SSH_MODULES).encode())
    assert "ssh" not in trimmed["cloud_init_modules"]
    assert "users-groups" in trimmed["cloud_init_modules"]
    assert len(trimmed["cloud_final_modules"]) == len(goyaml.load(settings.encode())["cloud_final_modules"]) - 1
