"""Disks by what lists of serial numbers and World Wide Names say."""

from __future__ import annotations

import pytest

from ironbell.codec.diskidentity import DiskIdentity, names, unmatched

DISK = DiskIdentity("WFK1A2B3", "naa.5000c500a1b2c3d4")


@pytest.mark.parametrize(
    "name", ["WFK1A2B3", "wfk1a2b3", "naa.5000c500a1b2c3d4", "0x5000C500A1B2C3D4", "wwn-0x5000c500a1b2c3d4"]
)
def test_a_disk_is_known_by_its_serial_number_and_its_wwn_in_any_form(name: str) -> None:
    assert DISK.is_any_of(["other", name])


@pytest.mark.parametrize("name", ["WFK1A2B", "0x", "naa.", "", "5000c500"])
def test_a_part_of_a_name_is_no_name(name: str) -> None:
    assert not DISK.is_any_of([name])
    assert not DiskIdentity().is_any_of([name])


def test_what_matches_no_disk_is_named() -> None:
    assert names(" WFK1A2B3, ,typo,WFK1A2B3") == ["WFK1A2B3", "typo"]
    assert unmatched(["WFK1A2B3", "typo"], [DISK]) == ["typo"]
