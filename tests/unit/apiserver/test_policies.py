"""Policies over plain values: variables, allowances, and what another release stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.apiserver.policies.evaluate import Failure, evaluate
from ironbell.apiserver.policies.spec import VALIDATING, Policies, Policy, read_policy
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.codec import effort


def policy(*expressions: str, **spec: Any) -> Policy:
    validations = [{"expression": expression} for expression in expressions]
    return read_policy("p", msgspec.json.encode({"spec": {"validations": validations, **spec}}))


def messages(found: Policy, **values: Any) -> list[str]:
    given = {"object": {}, "oldObject": None, "request": {}, "authorizer": None, "namespaceObject": None}
    return [failure.message for failure in evaluate(found, {**given, **values}).failures]


def test_variables_are_evaluated_when_they_are_used() -> None:
    variables = [
        {"name": "bad", "expression": "object.none.at.all"},
        {"name": "two", "expression": "1 + 1"},
        {"name": "four", "expression": "variables.two * 2"},
    ]
    assert messages(policy("variables.four == 4 || variables.bad", variables=variables)) == []
    (message,) = messages(policy("variables.bad == 1", variables=variables))
    assert message.endswith("resulted in error: no such key: none")


def test_variables_that_need_each_other_are_an_error() -> None:
    variables = [
        {"name": "a", "expression": "variables.b"},
        {"name": "b", "expression": "variables.a"},
    ]
    (message,) = messages(policy("variables.a == 1", variables=variables))
    assert "the expression is too long a chain" in message


def test_expensive_expressions_are_errors() -> None:
    numbers = list(range(3000))
    result = policy("object.n.all(a, object.n.all(b, object.n.all(c, a + b + c >= 0)))")
    with effort.limited(0.05):
        (message,) = messages(result, object={"n": numbers})
    assert "too much time" in message


LOOP = "object.n.map(x, object.n.map(y, y)).size() != {}"


def test_one_expression_has_a_limit_of_cost() -> None:
    result = policy(LOOP.format(-1), "object.n.size() == 0")
    first, second = messages(result, object={"n": list(range(300))})
    assert first.endswith("resulted in error: operation cancelled: actual cost limit exceeded")
    assert second == "failed expression: object.n.size() == 0"


@pytest.mark.parametrize(("failure_policy", "count"), [("Fail", 1), ("Ignore", 0)])
def test_all_expressions_of_a_policy_have_a_budget(failure_policy: str, count: int) -> None:
    loops = [LOOP.format(-index) for index in range(1, 14)]
    result = policy(*loops, "object.n.size() == 0", failurePolicy=failure_policy)
    exceeded = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert messages(result, object={"n": list(range(250))}) == [exceeded] * count
    assert messages(result, object={"n": list(range(230))}) == ["failed expression: object.n.size() == 0"]


@pytest.mark.parametrize(("failure_policy", "count"), [("Fail", 1), ("Ignore", 0)])
def test_match_conditions_have_a_budget_of_their_own(failure_policy: str, count: int) -> None:
    conditions = [{"name": f"c{index}", "expression": LOOP.format(-index)} for index in range(1, 5)]
    result = policy("false", matchConditions=conditions, failurePolicy=failure_policy)
    outcome = messages(result, object={"n": list(range(250))})
    assert [message.startswith("validation failed due to running out of cost budget") for message in outcome] == (
        [True] * count
    )


@pytest.mark.parametrize(("failure_policy", "count"), [("Fail", 1), ("Ignore", 0)])
def test_expressions_that_cannot_be_compiled_are_errors(failure_policy: str, count: int) -> None:
    assert len(messages(policy("nothing.at.all == 1", failurePolicy=failure_policy))) == count


def test_audit_annotations() -> None:
    annotations = [{"key": "name", "valueExpression": "object.name"}, {"key": "none", "valueExpression": "null"}]
    verdict = evaluate(policy(auditAnnotations=annotations), {"object": {"name": "n"}})
    assert (verdict.annotations, verdict.failures) == ({"p/name": "n"}, ())
    verdict = evaluate(policy(auditAnnotations=annotations), {"object": {}})
    assert verdict.failures == (Failure("audit annotation 'name' resulted in error: no such key: name"),)


def entry(resource: str, name: str, value: Any) -> Entry:
    return Entry(resource, ("", name), 1, "uid", msgspec.json.encode(value))


def test_what_cannot_be_read_is_not_in_force() -> None:
    policies = Policies(VALIDATING)
    policies.apply(Change(entry(VALIDATING.policies, "p", {"spec": {"validations": "none"}}), None, deleted=False))
    policies.apply(Change(entry(VALIDATING.bindings, "b", {"spec": {"policyName": "p"}}), None, deleted=False))
    assert policies.all == ()
    policies.apply(Change(entry(VALIDATING.policies, "p", {"spec": {}}), None, deleted=False))
    assert [(result.name, [bound.name for bound in bindings]) for result, bindings in policies.all] == [("p", ["b"])]
    policies.apply(Change(entry(VALIDATING.bindings, "b", {}), None, deleted=True))
    assert policies.all == ()
