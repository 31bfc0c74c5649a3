"""Rules that could become too expensive are refused with their definition."""

from __future__ import annotations

from typing import Any

import pytest

from support.kubeapi import Answer, KubeApi
from support.recorded import read

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CASES = read("rule_costs")


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
