"""Rules that could become expensive are refused with their definition; those that are, when they are asked."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.api.recorded import read
from support.waiting import eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CASES = read("rule_costs")
LOOP = "self.l.all(x, self.l.all(y, x == x + y - y))"


def definition(spec: dict[str, Any], plural: str = "rules") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.costs.example.org"},
        "spec": {
            "group": "costs.example.org", "scope": "Namespaced", "names": {"plural": plural, "kind": plural.title()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip


def causes(answer: Answer) -> list[list[str]]:
    return sorted([cause["field"], cause["reason"], cause["message"]] for cause in answer.causes)


@pytest.mark.parametrize("case", CASES, ids=[case[0].replace(" ", "-") for case in CASES])
def test_what_rules_may_cost(api: KubeApi, case: tuple[str, dict[str, Any], list[list[str]]]) -> None:
    _, spec, expected = case
    answer = api.post(DEFINITIONS, definition(spec), dryRun="All")
    assert (answer.status, causes(answer)) == (422 if expected else 201, expected)


def served(api: KubeApi, plural: str, rules: list[dict[str, Any]], namespace: str, *, most: int = 900) -> str:
    """The path of objects whose `spec.l`, a list of numbers, has rules."""
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": most}
    spec = {"type": "object", "properties": {"l": numbers}, "x-kubernetes-validations": rules}
    assert api.post(DEFINITIONS, definition(spec, plural)).status in {201, 409}
    path = f"/apis/costs.example.org/v1/namespaces/{namespace}/{plural}"
    body = thing(plural, 1)
    eventually(lambda: api.post(path, body, dryRun="All").status == 201)
    return path


def thing(plural: str, length: int) -> dict[str, Any]:
    return {
        "apiVersion": "costs.example.org/v1", "kind": plural.title(), "metadata": {"name": "one"},
        "spec": {"l": list(range(length))},
    }  # fmt: skip


def test_one_rule_that_costs_too_much(api: KubeApi, namespace: str) -> None:
    rules = [{"rule": LOOP, "message": "it does not hold"}, {"rule": "self.l.size() < 3"}]
    path = served(api, "calls", rules, namespace)
    assert causes(api.post(path, thing("calls", 50))) == [
        ["spec", "FieldValueInvalid", "Invalid value: failed rule: self.l.size() < 3"]
    ]
    why = "no further validation rules will be run due to call cost exceeds limit for rule: it does not hold"
    message = f"Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': {why}"
    assert causes(api.post(path, thing("calls", 900))) == [["spec", "FieldValueInvalid", message]]


def test_rules_that_cost_too_much_together(api: KubeApi, namespace: str) -> None:
    rules = [{"rule": f"self.l.map(x, self.l.map(y, y)).size() != {-index}"} for index in range(1, 14)]
    path = served(api, "budgets", rules, namespace, most=250)
    why = "validation failed due to running out of cost budget, no further validation rules will be run"
    expected = [["spec", "FieldValueInvalid", f'Invalid value: "object": {why}']]
    assert causes(api.post(path, thing("budgets", 250))) == expected
    answer = api.post(path, thing("budgets", 230))
    assert answer.status == 201, answer.json


def test_a_message_that_costs_too_much(api: KubeApi, namespace: str) -> None:
    message = f"string({LOOP})"
    rules = [{"rule": "self.l.size() < 3", "messageExpression": message}, {"rule": "self.l.size() < 2"}]
    path = served(api, "messages", rules, namespace)
    why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
    assert causes(api.post(path, thing("messages", 900))) == [
        ["spec", "FieldValueInvalid", f'Invalid value: "object": {why}: "{message}"']
    ]
