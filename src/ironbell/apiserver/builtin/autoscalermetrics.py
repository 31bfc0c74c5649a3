"""Metrics and behaviour of HorizontalPodAutoscalers as autoscaling/v1 carries them in annotations.

Source: kubernetes/kubernetes: pkg/apis/autoscaling/v1/conversion.go; kubernetes/api: autoscaling/v1/types.go (order of
fields in JSON).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Value = dict[str, Any]


@dataclass(frozen=True)
class _Side:
    """Names of the amounts in a spec's metrics, or in a status's."""

    word: str
    """Prefix of the old version's fields."""
    part: str
    """Field of the new version that holds the amounts."""
    is_aim: bool


AIM = _Side("target", "target", is_aim=True)
MEASURED = _Side("current", "current", is_aim=False)

_FIELDS = {
    "Object": "object", "Pods": "pods", "Resource": "resource", "ContainerResource": "containerResource",
    "External": "external",
}  # fmt: skip
_RULES = {"stabilizationWindowSeconds": "StabilizationWindowSeconds", "selectPolicy": "SelectPolicy"}
_POLICY = {"type": "Type", "value": "Value", "periodSeconds": "PeriodSeconds"}
_DIRECTIONS = {"scaleUp": "ScaleUp", "scaleDown": "ScaleDown"}


def part_of(value: Value, name: str) -> Value:
    """Return an inner object, or an empty one if it is missing."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def old_metric(metric: Value, side: _Side) -> Value:
    """A metric in the form of autoscaling/v1."""
    kind = str(metric.get("type", ""))
    field = _FIELDS.get(kind, "")
    if field not in metric:
        return {"type": kind}
    given = part_of(metric, field)
    amounts, named = part_of(given, side.part), part_of(given, "metric")
    value, average, word = amounts.get("value"), amounts.get("averageValue"), side.word
    needed = None if side.is_aim else "0"
    match kind:
        case "Object":
            old = {
                "target": given.get("describedObject"), "metricName": named.get("name", ""),
                f"{word}Value": value or "0", "selector": named.get("selector"), "averageValue": average,
            }  # fmt: skip
        case "Pods":
            old = {
                "metricName": named.get("name", ""), f"{word}AverageValue": average or "0",
                "selector": named.get("selector"),
            }  # fmt: skip
        case "External":
            old = {
                "metricName": named.get("name", ""), "metricSelector": named.get("selector"),
                f"{word}Value": value or needed, f"{word}AverageValue": average,
            }  # fmt: skip
        case _:
            old = {
                "name": given.get("name", ""), f"{word}AverageUtilization": amounts.get("averageUtilization"),
                f"{word}AverageValue": average or needed, "container": given.get("container"),
            }  # fmt: skip
    return {"type": kind, field: _present(old)}


def new_metric(metric: Value, side: _Side) -> Value:
    """A metric of autoscaling/v1 in the form of autoscaling/v2."""
    kind = str(metric.get("type", ""))
    field = _FIELDS.get(kind, "")
    if field not in metric:
        return {"type": kind}
    given, word = part_of(metric, field), side.word
    value, average = given.get(f"{word}Value"), given.get(f"{word}AverageValue")
    if kind in {"Resource", "ContainerResource"}:
        utilization = given.get(f"{word}AverageUtilization")
        aim = "AverageValue" if utilization is None else "Utilization"
        amounts = {"type": aim, "averageValue": average, "averageUtilization": utilization}
        new = {"name": given.get("name", ""), "container": given.get("container")}
    else:
        if kind == "Object":
            average = given.get("averageValue")
            value = None if average is not None and side.is_aim and value in (None, "0") else value
        is_average = kind == "Pods" or (average is not None if kind == "Object" else value is None)
        amounts = {"type": "AverageValue" if is_average else "Value", "value": value, "averageValue": average}
        selector = given.get("metricSelector" if kind == "External" else "selector")
        new = {
            "describedObject": given.get("target") if kind == "Object" else None,
            "metric": _present({"name": given.get("metricName", ""), "selector": selector}),
        }
    if not side.is_aim:
        del amounts["type"]
    return {"type": kind, field: _present({**new, side.part: _present(amounts)})}


def old_behaviour(behaviour: Value) -> Value:
    """Behaviour with the names that Go gives its internal type, as autoscaling/v1 carries it."""
    return {name: _old_rules(behaviour.get(field)) for field, name in _DIRECTIONS.items()}


def _old_rules(rules: Value | None) -> Value | None:
    if rules is None:
        return None
    old = {name: rules.get(field) for field, name in _RULES.items()}
    policies = rules.get("policies")
    old["Policies"] = (
        None
        if policies is None
        else [{name: policy.get(field) for field, name in _POLICY.items()} for policy in policies]
    )
    return {**old, "Tolerance": rules.get("tolerance")}


def new_behaviour(carried: Value) -> Value:
    """Behaviour as autoscaling/v2 has it, from what autoscaling/v1 carries."""
    return {
        field: _new_rules(part_of(carried, name))
        for field, name in _DIRECTIONS.items()
        if carried.get(name) is not None
    }


def _new_rules(rules: Value) -> Value:
    new = {field: rules.get(name) for field, name in _RULES.items()}
    policies = rules.get("Policies")
    if isinstance(policies, list):
        new["policies"] = [
            {field: policy.get(name) for field, name in _POLICY.items()}
            for policy in policies
            if isinstance(policy, dict)
        ]
    return _present({**new, "tolerance": rules.get("Tolerance")})


def _present(value: Value) -> Value:
    return {field: content for field, content in value.items() if content is not None}
