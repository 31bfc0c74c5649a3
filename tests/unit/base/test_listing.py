"""The first few of many."""

from __future__ import annotations

import pytest

from ironbell.base.listing import first_of, listed


@pytest.mark.parametrize(
    ("items", "text"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d"], "a, b, c, ... (1 more)")],
)
def test_upstreams_form(items: list[str], text: str) -> None:
    assert listed(items) == text


@pytest.mark.parametrize(
    ("texts", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a; b"), (["a", "b", "c"], "a; b and 1 more")]
)
def test_others_are_counted_in_words(texts: list[str], text: str) -> None:
    assert first_of(texts, 2, "; ") == text
