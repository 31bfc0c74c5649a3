"""Fields that a text has twice are found, with their paths."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.verbs.duplicates import text_faults

TABLE = [
    (b'{"a":1,"a":2}', ["a"]),
    (b'{"a":{"b":1,"b" : 2},"c":[{"d":1},{"d":1,"d":1}]}', ["a.b", "c[1].d"]),
    (b'{"a":1,"a":{"b":1},"a":3}', ["a"]),
    (b'{"a":"\\"b\\":","b":1}', []),
]


@pytest.mark.parametrize(("text", "paths"), TABLE)
def test_duplicates_are_found(text: bytes, paths: list[str]) -> None:
    assert list(text_faults(text, msgspec.json.decode(text)).duplicates) == paths


def test_unknown_fields_are_reported_in_their_place() -> None:
    text = b'{"x":1,"spec":{"a":1,"y":2,"a":3},"z":0}'
    faults = text_faults(text, msgspec.json.decode(text))
    listed = ['unknown field "x"', 'unknown field "spec.y"', 'duplicate field "spec.a"', 'unknown field "z"']
    assert faults.with_unknown(["z", "spec.y", "x"], in_text_order=True) == listed
    assert faults.with_unknown(["x"], in_text_order=False) == ['duplicate field "spec.a"', 'unknown field "x"']


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.sampled_from([None, 2]))
def test_texts_without_duplicates_have_none(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert not text_faults(text, json.loads(text)).duplicates
