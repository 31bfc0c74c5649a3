from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.labels import SelectorError, parse_selector

LABELS = {"app": "web", "tier": "front", "example.com/zone": "a", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        (" app = web , tier != back ", True),
        ("app=db", False),
        ("missing!=x", True),
        ("app!=web", False),
        ("app in (web, db),tier notin (back)", True),
        ("missing notin (x)", True),
        ("missing in (x)", False),
        ("example.com/zone", True),
        ("!missing", True),
        ("!app", False),
        ("empty=", True),
        ("empty in ()", True),
        ("app=", False),
    ],
)
def test_selects_as_kubernetes_does(selector: str, matches: bool) -> None:
    assert parse_selector(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    "selector", [",", "a=b,", "a=b c", "a in b", "=x", "a>1", "a in (x", "!", "a=b,,c", "-a=b", "a=/"]
)
def test_refuses_what_is_malformed(selector: str) -> None:
    with pytest.raises(SelectorError):
        parse_selector(selector)


@given(st.text(alphabet="ab=!,() in/.-", max_size=30))
def test_any_text_is_a_selector_or_our_error(text: str) -> None:
    with contextlib.suppress(SelectorError):
        parse_selector(text).matches(LABELS)
