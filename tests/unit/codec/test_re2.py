"""Patterns from whoever sends them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec import effort
from ironbell.codec.effort import TooMuchEffort
from ironbell.codec.re2 import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^(a+)+$", "a" * 100_000 + "b"),
        (r"^(a|a)*$", "a" * 100_000 + "b"),
        (r"^(\w+\s?)*$", "word " * 20_000 + "!"),
        (r"(x+x+)+y", "x" * 100_000),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        (r"(.*a){20}", "b" * 10_000),
    ],
)
def test_what_takes_others_for_ever_ends(pattern: str, text: str) -> None:
    assert not compile_pattern(pattern).matches(text)


@pytest.mark.parametrize("pattern", [r"(a){0,1000}{0,1000}", r"((((a{99}){99}){99}){99})", r"(?i)(\pL{0,900})+x$"])
def test_a_large_program_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "(?=a)", r"(a)\1", "(?<!a)b", "\ud800", "a{1001}"])
def test_what_go_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="not a usable regular expression"):
        compile_pattern(pattern)


def test_slow_patterns_spend_of_the_allowance() -> None:
    slow = compile_pattern("(a|b)*a(a|b){900}c")
    text = "".join(random.Random(1).choices("ab", k=5_000))
    with pytest.raises(TooMuchEffort), effort.limited(0.1):  # noqa: PT012 - which search overdraws does not matter
        for _ in range(100_000):
            slow.matches(text)
    assert not slow.matches(text)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a.", "abacäd", ["ab", "ac"]),
        ("", "äö", ["", "", ""]),
        ("ö*", "aööb", ["", "öö", "", ""]),
        ("x", "", []),
    ],
)
def test_all_matches(pattern: str, text: str, found: list[str]) -> None:
    assert list(compile_pattern(pattern).find_all(text)) == found


@given(st.text(), st.text())
def test_any_pattern_over_any_text_has_an_end(pattern: str, text: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return
    compiled.matches(text)
    assert len(list(compiled.find_all(text))) <= len(text) + 1
