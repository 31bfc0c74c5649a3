"""Numbers in sentences."""

from __future__ import annotations

from ironbell.base.wording import counted


def test_the_noun_follows_its_number() -> None:
    assert [counted(number, "server") for number in (0, 1, 2)] == ["0 servers", "1 server", "2 servers"]
    assert counted(2, "copy", "copies") == "2 copies"
