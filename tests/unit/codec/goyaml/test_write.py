"""What is written comes back the same, from Go's rules and from PyYAML's."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.goyaml import YamlError, dump, load

_WORDS = """
y n Y N 1e3 12e03 1E5 1.e5 1e+3 089 0o17 +.5 0e0 12:30:45 2001-01-01 = << ~ null 0x10 1_0 .inf yes on -1:30
2001-12-14T21:59:43Z 010 -0b1 .5 !x &x *x - ? : # | > @ ` % { } [ ] , ' "
"""
_AMBIGUOUS = [*_WORDS.split(), *("", " ", "a: b", "a #b", "2001-12-14 21:59:43.10 -5", "\t", "\x07", "é", "\U0001f600")]


@pytest.mark.parametrize("text", _AMBIGUOUS)
def test_ambiguous_text_stays_text_for_every_reader(text: str) -> None:
    written = dump({text: text, "list": [text]})
    expected = {text: text, "list": [text]}
    assert load(written) == expected
    assert yaml.safe_load(written) == expected


def test_the_layout_is_that_of_kubernetes() -> None:
    value = {"b": 1, "a": [1, {"x": "y", "z": None}], "script": "one\ntwo\n", "k10": {}, "k9": [], "f": 1.0, "t": True}
    assert dump(value) == (
        'a:\n- 1\n- x: "y"\n  z: null\nb: 1\nf: 1\nk9: []\nk10: {}\nscript: |\n  one\n  two\nt: true\n'
    )


@pytest.mark.parametrize("value", ["wait...", {"a": "wait..."}, ["..."], {"a": "one\n\n"}, "one\n\n"])
@pytest.mark.parametrize("go_exact", [False, True])
def test_three_dots_at_the_end_are_text(value: object, go_exact: bool) -> None:
    """The mark of a document's end is taken away, and nothing else."""
    written = dump(value, go_exact=go_exact)
    assert load(written) == value
    assert not written.endswith("\n...\n")


def test_keys_keep_their_order_when_asked() -> None:
    assert dump({"kind": "A", "apiVersion": "v1"}, sort_keys=False) == "kind: A\napiVersion: v1\n"


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": object()}, "\ud800"])
def test_what_json_lacks_is_refused(value: object) -> None:
    with pytest.raises(YamlError):
        dump(value)


_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.text("0123456789.eExob:-+_yn ~<>=\n\t", max_size=8)


@given(
    st.recursive(
        _SCALARS | _TEXT, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner), max_leaves=12
    )
)
def test_written_values_come_back(value: object) -> None:
    assert load(dump(value)) == value
