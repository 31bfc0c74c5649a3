"""What comes again and again is logged so many times a minute, and counted beyond."""

from __future__ import annotations

from ironbell.base.repeats import Repeats


def test_a_flood_is_a_few_lines_a_minute_and_a_count() -> None:
    repeats = Repeats(burst=3)
    assert [repeats.skipped("one", 0.0) for _ in range(100)] == [0, 0, 0, *[None] * 97]
    assert repeats.skipped("two", 0.0) == 0
    assert [repeats.skipped("one", 60.0) for _ in range(4)] == [97, 0, 0, None]


def test_so_many_things_are_told_apart_and_no_more() -> None:
    repeats = Repeats(burst=1, max_keys=10)
    assert [repeats.skipped(number, 0.0) for number in range(100)] == [0] * 100
    assert len(repeats._windows) == 10
