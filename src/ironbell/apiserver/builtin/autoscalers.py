"""HorizontalPodAutoscalers between their two versions: stored as autoscaling/v2, shown as autoscaling/v1 as well.

Version v1 keeps what it has no field for (metrics other than CPU, measured values, conditions, behaviour) in
annotations, as JSON.

Source: kubernetes/kubernetes: pkg/apis/autoscaling/v1/conversion.go, pkg/apis/autoscaling/annotations.go.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ironbell.apiserver.builtin.autoscalermetrics import (
    AIM,
    MEASURED,
    Value,
    new_behaviour,
    new_metric,
    old_behaviour,
    old_metric,
    part_of,
)

T = TypeVar("T")

NEW = "autoscaling/v2"
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS = f"{_PREFIX}metrics"
_MEASURED = f"{_PREFIX}current-metrics"
_CONDITIONS = f"{_PREFIX}conditions"
_BEHAVIOUR = f"{_PREFIX}behavior"
_CARRIERS = frozenset({
    _METRICS, _MEASURED, _CONDITIONS, _BEHAVIOUR, f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance",
})  # fmt: skip
_USUAL_PERCENT = 80


def convert_autoscaler(value: Value, api_version: str) -> Value:
    """A HorizontalPodAutoscaler in the form of `api_version`."""
    if value.get("apiVersion") == api_version:
        return value
    spec, status = part_of(value, "spec"), part_of(value, "status")
    shared = {field: spec[field] for field in ("scaleTargetRef", "minReplicas", "maxReplicas") if field in spec}
    old_status = {field: status[field] for field in ("observedGeneration", "lastScaleTime") if field in status}
    if api_version == NEW:
        annotations = part_of(part_of(value, "metadata"), "annotations")
        return {
            **_annotated(value, {}),
            "apiVersion": api_version,
            "spec": {**shared, **_new_spec(spec, annotations)},
            "status": {**old_status, **_new_status(status, annotations)},
        }
    return {
        **_annotated(value, _carried(spec, status)),
        "apiVersion": api_version,
        "spec": {**shared, **_old_spec(spec)},
        "status": {**old_status, **_old_status(status)},
    }


def _old_spec(spec: Value) -> Value:
    utilizations = [
        utilization
        for metric in _list(spec, "metrics")
        if (utilization := _cpu_utilization(metric, "target")) is not None
    ]
    return {"targetCPUUtilizationPercentage": utilizations[0]} if utilizations else {}


def _old_status(status: Value) -> Value:
    utilizations = [
        utilization
        for metric in _list(status, "currentMetrics")
        if (utilization := _cpu_utilization(metric, "current")) is not None
    ]
    counts = {field: status.get(field) or 0 for field in ("currentReplicas", "desiredReplicas")}
    return {**counts, "currentCPUUtilizationPercentage": utilizations[-1]} if utilizations else counts


def _carried(spec: Value, status: Value) -> dict[str, str]:
    """The annotations of v1."""
    others = [metric for metric in _list(spec, "metrics") if _cpu_utilization(metric, "target") is None]
    behaviour = spec.get("behavior")
    carried: dict[str, Any] = {
        _METRICS: [old_metric(metric, AIM) for metric in others],
        _MEASURED: [old_metric(metric, MEASURED) for metric in _list(status, "currentMetrics")],
        _BEHAVIOUR: None if behaviour is None else old_behaviour(behaviour),
        _CONDITIONS: _list(status, "conditions"),
    }
    return {name: msgspec.json.encode(content).decode() for name, content in carried.items() if content}


def _new_spec(spec: Value, annotations: Value) -> Value:
    utilization = spec.get("targetCPUUtilizationPercentage")
    metrics = [new_metric(metric, AIM) for metric in _read(annotations, _METRICS, list[dict[str, Any]]) or ()]
    if utilization is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": _USUAL_PERCENT if utilization is None else utilization}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    behaviour = new_behaviour(_read(annotations, _BEHAVIOUR, dict[str, Any]) or {})
    return {"metrics": metrics, "behavior": behaviour} if behaviour else {"metrics": metrics}


def _new_status(status: Value, annotations: Value) -> Value:
    measured = _read(annotations, _MEASURED, list[dict[str, Any]])
    utilization = status.get("currentCPUUtilizationPercentage")
    seen: list[Value] | None = None
    if measured is not None:
        seen = [new_metric(metric, MEASURED) for metric in measured]
    elif utilization is not None:
        seen = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": utilization}}}]
    new: Value = {"desiredReplicas": status.get("desiredReplicas") or 0, "currentMetrics": seen}
    if status.get("currentReplicas"):
        new["currentReplicas"] = status["currentReplicas"]
    conditions = _read(annotations, _CONDITIONS, list[dict[str, Any]])
    return {**new, "conditions": conditions} if conditions else new


def _cpu_utilization(metric: Value, amounts: str) -> Any:
    """Return the CPU utilization of a metric, in per cent; None for a metric of something else."""
    resource = part_of(metric, "resource")
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return part_of(resource, amounts).get("averageUtilization")


def _annotated(value: Value, carried: dict[str, str]) -> Value:
    """The object with these of the annotations that carry something, and no others of them."""
    meta = part_of(value, "metadata")
    annotations = part_of(meta, "annotations")
    if not carried and not annotations.keys() & _CARRIERS:
        return value
    kept = {name: text for name, text in annotations.items() if name not in _CARRIERS}
    rest = {field: content for field, content in meta.items() if field != "annotations"}
    annotations = {**kept, **carried}
    return {**value, "metadata": {**rest, "annotations": annotations} if annotations else rest}


def _list(value: Value, field: str) -> list[Value]:
    elements = value.get(field)
    return [element for element in elements if isinstance(element, dict)] if isinstance(elements, list) else []


def _read(annotations: Value, name: str, kind: type[T]) -> T | None:
    """Return the content of an annotation; None if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(str(annotations.get(name, "")), type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
