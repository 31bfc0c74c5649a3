"""Durations: Go's own cases, and what goes in comes out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.durations import SECOND, DurationError, duration_text, parse_duration, parse_seconds, seconds_text

HOUR = 3600 * SECOND
LONGEST = (1 << 63) - 1


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * SECOND),
        ("+5s", 5 * SECOND),
        ("-5.6s", -5_600_000_000),
        (".5h", HOUR // 2),
        ("1.s", SECOND),
        ("1h30m", HOUR + HOUR // 2),
        ("39h9m14.425s", 39 * HOUR + 554_425_000_000),
        ("10ns", 10),
        ("11us", 11_000),
        ("12µs", 12_000),
        ("12μs", 12_000),
        ("52763797000ns", 52_763_797_000),
        ("0.3333333333333333333h", 20 * 60 * SECOND),
        ("0000000000000000000000000001s", SECOND),
        ("0.100000000000000000000h", HOUR // 10),
        ("9223372036854775807ns", LONGEST),
        ("-9223372036854775808ns", -LONGEST - 1),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ('1"\x07é', 'time: unknown unit "\\"\\x07\\xc3\\xa9" in duration "1\\"\\x07\\xc3\\xa9"'),
        ("9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"'),
    ],
)
def test_an_error_has_go_s_text(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@given(st.integers(-LONGEST - 1, LONGEST))
def test_what_is_written_is_read_again(nanoseconds: int) -> None:
    assert parse_duration(duration_text(nanoseconds)) == nanoseconds


@given(
    st.text(max_size=30) | st.from_regex(r"[-+]?([0-9]{0,3}(\.[0-9]{0,3})?(ns|us|ms|s|m|h|d)?){0,4}", fullmatch=True)
)
def test_any_text_is_a_duration_or_an_error(text: str) -> None:
    try:
        nanoseconds = parse_duration(text)
    except DurationError:
        return
    assert -LONGEST - 1 <= nanoseconds <= LONGEST


def test_seconds_are_not_negative() -> None:
    assert parse_seconds("1m0.5s") == 60.5
    with pytest.raises(DurationError, match='negative duration "-1s"'):
        parse_seconds("-1s")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (50, "50s"), (100, "1m40s"), (3600, "1h0m0s"), (-90, "-1m30s")]
)
def test_whole_seconds_are_written_as_go_writes_them(seconds: int, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(1, "1ns"), (1_100, "1.1µs"), (2_200_000, "2.2ms"), (3_300_000_000, "3.3s"), (HOUR + 1, "1h0m0.000000001s")],
)
def test_small_units_are_written_as_go_writes_them(nanoseconds: int, text: str) -> None:
    assert duration_text(nanoseconds) == text
