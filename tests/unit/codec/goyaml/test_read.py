"""Plain scalars mean what go-yaml v2 says, and nothing but YamlError comes out."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.goyaml import Limits, YamlError, load, load_all


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("No", False), ("off", False), ("~", None), ("", None),
        ("1e3", 1000.0), ("12e03", 12000.0), ("1.e5", 100000.0), ("1e+3", 1000.0), ("089", 89.0), ("0o17", 15),
        ("+.5", 0.5), (".5", 0.5), ("0e0", 0.0), ("0x1F", 31), ("-0b101", -5), ("1_000", 1000), ("010", 8),
        ("12:30:45", "12:30:45"), ("10:20:30:40:50:16", "10:20:30:40:50:16"), ("2001-01-01", "2001-01-01"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("18446744073709551615", 18446744073709551615), ("18446744073709551616", 18446744073709551616.0),
        ("1e400", "1e400"), ("'1'", "1"), ('"yes"', "yes"), ("!!str 1", "1"), ("!!float 1", 1.0), ("!thing 1", "1"),
        ("!!binary aGk=", "hi"), ("-", [None]), ("0.", 0.0), (".", "."), ("0x", "0x"),
    ],
)  # fmt: skip
def test_scalars_mean_what_go_says(text: str, value: object) -> None:
    got = load(text)
    assert got == value
    assert type(got) is type(value)


def test_keys_become_text() -> None:
    assert load("{1: a, 1.5: b, true: c, 'x': d, 0x10: e}") == {"1": "a", "1.5": "b", "true": "c", "x": "d", "16": "e"}


def test_a_later_duplicate_wins_unless_strict() -> None:
    assert load("a: 1\na: 2") == {"a": 2}
    with pytest.raises(YamlError, match="line 2: key 'a' is given twice"):
        load("a: 1\na: 2", strict=True)


def test_merge_keys_take_effect_in_order() -> None:
    assert load("x: &x {a: 1, b: 2}\nz: {<<: *x, a: 3}")["z"] == {"a": 3, "b": 2}
    assert load("x: &x {a: 1}\nw: &w {a: 5, c: 6}\nz: {<<: [*x, *w]}")["z"] == {"a": 1, "c": 6}


def test_an_anchor_may_be_defined_again() -> None:
    assert load("a: &x 1\nb: &x 2\nc: *x") == {"a": 1, "b": 2, "c": 2}


def test_only_the_first_document_is_loaded() -> None:
    assert load("a: 1\n---\nb: [") == {"a": 1}


def test_empty_documents_are_left_out() -> None:
    assert list(load_all("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n...\n")) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [", 2),
        ("a: *x", 1),
        ("&a [*a]", 1),
        ("a: .nan", 1),
        ("x:\n  {[]: 1}", 2),
        ("a: b: c", 1),
        ("~: 1", 1),
    ],
)
def test_errors_name_the_line(text: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        load(text)
    assert caught.value.line == line


def test_alias_bombs_are_refused() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]" for i in range(8)]
    with pytest.raises(YamlError, match="excessive aliasing"):
        load("\n".join(lines))


def test_depth_and_size_are_bounded() -> None:
    with pytest.raises(YamlError, match="nested deeper than 100"):
        load("[" * 10_000)
    with pytest.raises(YamlError, match="larger than 4 bytes"):
        load("aaaaa", limits=Limits(size_bytes=4))


@given(st.binary() | st.text(alphabet="abc:{}[]&*!|>-'\"\n #,?%@0123456789.eExX~<", max_size=40))
def test_any_text_gives_a_value_or_the_modules_error(text: bytes | str) -> None:
    with contextlib.suppress(YamlError):
        load(text)
        list(load_all(text))
