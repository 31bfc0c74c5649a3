"""What a strange template cannot do to whoever renders it: patterns, nesting and numbers of any size."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.codec.envsubst import SubstitutionError, substitute
from ironbell.codec.envsubst.patterns import glob


@pytest.mark.parametrize("operator", ["#", "##", "%", "%%"])
def test_a_pattern_with_many_stars_takes_no_time(operator: str) -> None:
    value = "a" * 120
    begun = time.process_time()
    assert substitute("${A" + operator + "*a" * 12 + "b}", {"A": value}) == value
    assert time.process_time() - begun < 1


def test_nesting_has_an_end() -> None:
    assert substitute("${A:=" * 60 + "x" + "}" * 60, {}) == "x"
    with pytest.raises(SubstitutionError, match="line 1: variables are nested more than 64 deep"):
        substitute("${A:=" * 5000 + "x" + "}" * 5000, {})


def test_a_number_of_any_length_is_answered() -> None:
    assert substitute("${A:" + "1" * 5000 + "}", {"A": "value"}) == "value"
    assert substitute("${A:1:-" + "1" * 5000 + "}", {"A": "value"}) == "value"
    assert substitute("${A:1:2}|${A:1:-9}|${A:+1}", {"A": "value"}) == "al||value"


@given(st.text("ab*?", max_size=8), st.text("ab\n", max_size=10))
def test_stars_and_question_marks_are_what_they_are_as_regular_expressions(pattern: str, text: str) -> None:
    regex = re.compile(pattern.replace("*", ".*").replace("?", "."), re.DOTALL)
    matcher = glob(pattern)
    assert matcher is not None
    expected = [length for length in range(1, len(text) + 1) if regex.fullmatch(text, 0, length)]
    assert list(matcher.lengths(text)) == expected
