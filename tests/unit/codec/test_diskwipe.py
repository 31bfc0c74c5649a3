"""What a wipe reports about its disks, there and back."""

from __future__ import annotations

import pytest

from ironbell.codec.diskwipe import DiskReport, parse, time_limit_s

REPORTS = [
    DiskReport("/dev/sda", "8.6 GB", "A2-89", "discard that reads as zeros", 8589934592, 8589934592, True),
    DiskReport("/dev/disk/by-id/x", "512 B", "", "zeros at the ends", 20, 8589934592, False),
    DiskReport("/dev/nvme0n1", "1.9 TB", "S 4 X"),
]


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_a_sentence_that_can_be_read_back(report: DiskReport) -> None:
    assert parse(str(report)) == [report]


def test_reports_of_several_disks_are_one_message() -> None:
    assert parse("; ".join(map(str, REPORTS))) == REPORTS


@pytest.mark.parametrize("text", ["", "action completed", "wiped", "wiped /dev/sda (simulated)", "nothing was kept"])
def test_other_messages_report_nothing(text: str) -> None:
    assert parse(text) == []


def test_a_report_that_was_cut_or_not_finished_claims_nothing() -> None:
    whole = str(REPORTS[0])
    assert not any(found.complete for end in range(len(whole)) for found in parse(whole[:end]))


def test_an_odd_serial_number_cannot_forge_a_report() -> None:
    odd = DiskReport("/dev/sda", "1.0 kB", "x) by y: 5 of 5 bytes, complete; kept (", "quick", 1, 5, False)
    (found,) = parse(str(odd))
    assert not found.complete


def test_the_time_limit_grows_with_the_disks() -> None:
    assert time_limit_s(0) == 7200
    assert time_limit_s(20 * 10**12) == 7200 + 400_000
