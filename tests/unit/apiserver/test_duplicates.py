"""Fields that a text has twice are found, with their paths."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.apiserver.verbs.duplicates import duplicate_fields

TABLE = [
    (b'{"a":1,"a":2}', ["a"]),
    (b'{"a":{"b":1,"b" : 2},"c":[{"d":1},{"d":1,"d":1}]}', ["a.b", "c[1].d"]),
    (b'{"a":1,"a":{"b":1},"a":3}', ["a"]),
    (b'{"a":"\\"b\\":","b":1}', []),
]


@pytest.mark.parametrize(("text", "paths"), TABLE)
def test_duplicates_are_found(text: bytes, paths: list[str]) -> None:
    assert duplicate_fields(text, msgspec.json.decode(text)) == paths


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.sampled_from([None, 2]))
def test_texts_without_duplicates_have_none(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert duplicate_fields(text, json.loads(text)) == []
