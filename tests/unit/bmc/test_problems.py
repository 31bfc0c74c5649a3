"""Problems with BMCs in the messages of conditions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.bmc.driver import AuthenticationError, BmcProblem, reported, reported_cause, reported_problem


@given(st.sampled_from(BmcProblem), st.text(alphabet=st.characters(exclude_characters=";")))
def test_a_reported_problem_is_read_again(problem: BmcProblem, cause: str) -> None:
    message = reported(problem, cause)
    assert (reported_problem(message), reported_cause(problem, message)) == (problem, cause)


def test_the_remedy_is_not_part_of_the_cause() -> None:
    error = AuthenticationError("192.0.2.9: the login is rejected")
    assert error.message != "192.0.2.9: the login is rejected"
    message = reported(error.problem, error.message)
    assert reported_cause(error.problem, message) == "192.0.2.9: the login is rejected"


@pytest.mark.parametrize("message", ["", "BMCUnreachable", "other: BMCUnreachable: no route", "Failed: x"])
def test_a_message_of_another_form_has_no_problem(message: str) -> None:
    assert reported_problem(message) == ""
    assert reported_cause("", message) == message
