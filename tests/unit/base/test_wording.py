"""Numbers and durations in sentences."""

from __future__ import annotations

from ironbell.base.wording import counted, spoken_duration


def test_the_noun_follows_its_number() -> None:
    assert [counted(number, "server") for number in (0, 1, 2)] == ["0 servers", "1 server", "2 servers"]
    assert counted(2, "copy", "copies") == "2 copies"


def test_a_duration_in_a_sentence_has_one_unit() -> None:
    spoken = {-5: "0 s", 0: "0 s", 0.5: "0.5 s", 30: "30 s", 119: "119 s", 120: "2 min", 3600: "60 min", 7200: "2 h"}
    assert {seconds: spoken_duration(seconds) for seconds in spoken} == spoken
    assert [spoken_duration(86400), spoken_duration(3 * 86400 + 5)] == ["24 h", "3 d"]
