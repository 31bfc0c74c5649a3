"""Whose time the in-memory OS believes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.clock import ManualClock
from ironbell.osie.machine.timekeeping import Reading, correction, parse_http_date, parse_sntp, read_time

_2026 = 1_767_225_600.0


def _answer(seconds: int, *, mode: int = 4, leap: int = 0, stratum: int = 2) -> bytes:
    return bytes([leap << 6 | 4 << 3 | mode, stratum]) + bytes(38) + struct.pack("!II", seconds, 1 << 31)


def test_reads_a_time_server_in_this_era_and_the_next() -> None:
    assert parse_sntp(_answer(int(_2026) + 2_208_988_800)) == _2026 + 0.5
    assert parse_sntp(_answer(10)) == 2**32 - 2_208_988_800 + 10.5


@pytest.mark.parametrize(
    "packet",
    [b"", _answer(1 << 31)[:40], _answer(1 << 31, mode=3), _answer(1 << 31, leap=3), _answer(1 << 31, stratum=0)],
)
def test_does_not_believe_a_server_that_does_not_know(packet: bytes) -> None:
    assert parse_sntp(packet) is None


@given(st.binary(max_size=80))
def test_any_packet_is_read_or_ignored(packet: bytes) -> None:
    parse_sntp(packet)


@given(st.text(max_size=60))
def test_any_date_is_read_or_ignored(text: str) -> None:
    parse_http_date(text)


def test_reads_the_date_of_a_web_server() -> None:
    assert parse_http_date("Thu, 01 Jan 2026 00:00:00 GMT") == _2026


def test_believes_the_boot_script_where_no_time_server_is_named() -> None:
    told = read_time(time_servers=(), hosts=(), script_unix_s=1_800_000_000, clock=ManualClock())
    assert told == Reading(1_800_000_000.0, "the boot script")
    assert read_time(time_servers=(), hosts=(), script_unix_s=0, clock=ManualClock()) is None


def test_leaves_a_clock_that_is_right() -> None:
    assert correction(now_unix_s=_2026, reading=Reading(_2026 + 1, "x"), built_unix_s=0) is None
    assert correction(now_unix_s=_2026, reading=None, built_unix_s=_2026 - 1) is None


def test_sets_a_clock_that_is_wrong() -> None:
    reading = Reading(_2026 + 60, "x")
    assert correction(now_unix_s=_2026, reading=reading, built_unix_s=0) is reading


def test_nothing_is_earlier_than_the_image() -> None:
    lying = correction(now_unix_s=0, reading=Reading(5, "liar"), built_unix_s=_2026)
    assert lying is not None
    assert lying.unix_s == _2026
