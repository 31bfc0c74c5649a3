"""Rules cost the same here as in kube-apiserver: at most, by their estimate, and when they are asked."""

from __future__ import annotations

import contextlib
from random import Random
from typing import Any

import pytest

from ironbell.codec.cel import CelError, compile_rule, rule_cost
from ironbell.codec.cel.costs.meter import CallLimitExceeded, budgeted, left

from .conftest import Oracle
from .random_rules import Rules, schema, value
from .test_against_go import EXPRESSIONS, VALUE, schema_with

BUDGET = 1 << 40
# Which entry of a map comes first is chance in Go, and what is asked of the second depends on it.
ONE_ENTRY = {**VALUE, "m": {"a": "1"}}


def actual(rule: str, of: dict[str, Any], given: Any) -> int:
    """What a rule costs for a value, whether or not it can be evaluated."""
    ask = compile_rule(rule, of)
    with budgeted(BUDGET):
        with contextlib.suppress(CelError, CallLimitExceeded):
            ask(given, None)
        return BUDGET - int(left())


def differences(oracle: Oracle, asked: list[tuple[str, dict[str, Any], Any]]) -> dict[str, tuple[list[int], list[int]]]:
    """Rules that cost something else here: estimate and cost there, estimate and cost here."""
    cases = [
        {"schema": {**of, "x-kubernetes-validations": [{"rule": rule}]}, "values": [{"value": given}]}
        for rule, of, given in asked
    ]
    compared, found = 0, {}
    for (rule, of, given), answer in zip(asked, oracle(cases), strict=True):
        if answer.compile or answer.broken or answer.actual is None:
            continue
        compared += 1
        pair = ([*answer.costs, *answer.actual[0]], [rule_cost(rule, of), actual(rule, of, given)])
        if pair[0] != pair[1]:
            found[rule] = pair
    assert compared > len(asked) / 2
    return found


def test_expressions_cost_the_same(oracle: Oracle) -> None:
    of = schema_with("true")
    assert differences(oracle, [(rule, of, ONE_ENTRY) for rule in EXPRESSIONS]) == {}


@pytest.mark.parametrize("seed", range(6))
def test_any_rule_costs_the_same(oracle: Oracle, seed: int) -> None:
    random = Random(seed)
    of = schema(random)
    given, rules = value(random, of), Rules(random)
    assert differences(oracle, [(rules.rule(), of, given) for _ in range(100)]) == {}
