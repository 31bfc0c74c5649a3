"""Whole numbers that others wrote, of any length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.base.quantities import decimal
from ironbell.contract.clusters.versions import VersionError, parse_version

HUGE = "9" * 5000


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "\u0661", "1.0", "0x1", "9" * 19, HUGE])
def test_what_is_no_short_number_of_ascii_digits_is_none(text: str) -> None:
    assert decimal(text) is None


@given(st.integers(0, 10**18 - 1))
def test_a_number_is_itself(number: int) -> None:
    assert decimal(str(number)) == number
    assert decimal(f"{number}", digits=3) == (number if number < 1000 else None)


@pytest.mark.parametrize("text", [f"v{HUGE}.0.0", f"v1.2.3-{HUGE}", f"v1.2.3+{HUGE}"])
def test_a_version_of_any_length_is_none_or_one(text: str) -> None:
    with pytest.raises(VersionError, match="at most 256 characters"):
        parse_version(text)
