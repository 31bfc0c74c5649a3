"""The filter for what others wrote: no text of theirs controls a terminal."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.printable import LineFilter, coloured, coloured_lines, escaped_json, one_line, plain, printable

ATTACKS = {
    "title": "\x1b]0;root@bank\x07",
    "clear": "\x1b[2J\x1b[H",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "report": "\x1b[6n",
    "key": '\x1b[0;59;"rm -rf ~";13p',
    "8-bit": "\x9b2J\x9d0;title\x9c",
    "device control": "\x1bP$q\x1b\\",
    "carriage return": "good\rbad ",
    "backspace": "evil\b\b\b\bgood",
    "direction": "\u202elive\u2066\u200f",
    "hidden": "\x1b[8mhidden\x1b[38;5;1;8mhidden",
    "blinking": "\x1b[5mlook",
    "private colour": "\x1b[?31m\x1b[>4;2m",
    "halves": "\ud800\udfff",
}
SGR = re.compile(r"\x1b\[[0-9;]*m")
text = st.text(st.characters() | st.sampled_from("\x1b[]0123456789;mJ\x07\x9b\n\r"))


HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_harmless(shown: str) -> bool:
    return HIDDEN.search(shown) is None


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_no_attack_reaches_a_terminal(attack: str) -> None:
    for shown in (printable(attack), coloured(attack), coloured_lines(attack), plain(attack)):
        assert "\x1b" not in shown
        assert is_harmless(shown)
    assert "\n" not in one_line(f"{attack}\n")


@pytest.mark.parametrize(
    "colour", ["0", "", "1", "31", "01;31", "38;5;196", "48;2;1;2;3", "1;38;2;255;0;0", "97", "107"]
)
def test_colours_stay_and_end_with_their_line(colour: str) -> None:
    assert coloured(f"\x1b[{colour}mred") == f"\x1b[{colour}mred"
    assert coloured_lines(f"\x1b[{colour}mred\nplain") == f"\x1b[{colour}mred\x1b[0m\nplain"
    assert printable(f"\x1b[{colour}mred") == f"\\x1b[{colour}mred"
    assert plain(f"\x1b[{colour}mred") == "red"


@given(text)
def test_nothing_but_colours_controls_a_terminal(found: str) -> None:
    assert is_harmless(printable(found))
    assert is_harmless(SGR.sub("", coloured(found)))
    assert "\x1b" not in plain(found)
    assert printable(printable(found)) == printable(found)


@given(st.dictionaries(st.text(), st.text()))
def test_json_stays_the_same_document(value: dict[str, str]) -> None:
    shown = escaped_json(msgspec.json.encode(value).decode())
    assert json.loads(shown) == value
    assert is_harmless(shown)


@given(text, st.integers(1, 7))
def test_pieces_are_filtered_like_the_whole(found: str, size: int) -> None:
    data = found.encode("utf-8", "replace")
    lines = LineFilter()
    pieces = [lines.feed(data[place : place + size]) for place in range(0, len(data), size)]
    assert "".join([*pieces, lines.end()]) == coloured_lines(data.decode())


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    lines = LineFilter()
    shown = [lines.feed(b"\x1b[2J" + b"x" * 10_000) for _ in range(20)]
    assert len("".join(shown)) > 60_000
    assert "\x1b" not in "".join([*shown, lines.end()])


def test_bytes_that_are_no_text_are_written_out() -> None:
    lines = LineFilter()
    assert lines.feed(b"a\xff\x9b2J\r\nb") == "a\\xff\\x9b2J\n"
    assert lines.end() == "b"
