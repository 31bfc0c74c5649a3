"""Rules may cost the same here as in kube-apiserver, by their estimates."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ironbell.codec.cel import rule_cost

from .conftest import Oracle
from .random_rules import Rules, schema
from .test_against_go import EXPRESSIONS, schema_with


def differences(oracle: Oracle, rules: list[str], of: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Rules that have another estimate here: theirs, and ours."""
    cases = [{"schema": {**of, "x-kubernetes-validations": [{"rule": rule}]}, "values": []} for rule in rules]
    pairs = {
        rule: (answer.costs[0], rule_cost(rule, of))
        for rule, answer in zip(rules, oracle(cases), strict=True)
        if not answer.compile and not answer.broken
    }
    assert len(pairs) > len(rules) / 2
    return {rule: pair for rule, pair in pairs.items() if pair[0] != pair[1]}


def test_expressions_may_cost_the_same(oracle: Oracle) -> None:
    assert differences(oracle, EXPRESSIONS, schema_with("true")) == {}


@pytest.mark.parametrize("seed", range(6))
def test_any_rule_may_cost_the_same(oracle: Oracle, seed: int) -> None:
    random = Random(seed)
    of, rules = schema(random), Rules(random)
    assert differences(oracle, [rules.rule() for _ in range(100)], of) == {}
