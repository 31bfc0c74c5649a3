"""HorizontalPodAutoscalers between their two versions: stored as autoscaling/v2, shown as autoscaling/v1 as well.

What v1 has no field for (other metrics than the processor's, what was measured, conditions, behaviour) is in
annotations there, as JSON.

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
    told = {field: status[field] for field in ("observedGeneration", "lastScaleTime") if field in status}
    if api_version == NEW:
        annotations = part_of(part_of(value, "metadata"), "annotations")
        return {
            **_annotated(value, {}),
            "apiVersion": api_version,
            "spec": {**shared, **_new_spec(spec, annotations)},
            "status": {**told, **_new_status(status, annotations)},
        }
    return {
        **_annotated(value, _carried(spec, status)),
        "apiVersion": api_version,
        "spec": {**shared, **_old_spec(spec)},
        "status": {**told, **_old_status(status)},
    }


def _old_spec(spec: Value) -> Value:
    found = [share for metric in _list(spec, "metrics") if (share := _share(metric, "target")) is not None]
    return {"targetCPUUtilizationPercentage": found[0]} if found else {}


def _old_status(status: Value) -> Value:
    found = [share for metric in _list(status, "currentMetrics") if (share := _share(metric, "current")) is not None]
    counts = {field: status.get(field) or 0 for field in ("currentReplicas", "desiredReplicas")}
    return {**counts, "currentCPUUtilizationPercentage": found[-1]} if found else counts


def _carried(spec: Value, status: Value) -> dict[str, str]:
    """The annotations of v1."""
    others = [metric for metric in _list(spec, "metrics") if _share(metric, "target") is None]
    behaviour = spec.get("behavior")
    carried: dict[str, Any] = {
        _METRICS: [old_metric(metric, AIM) for metric in others],
        _MEASURED: [old_metric(metric, MEASURED) for metric in _list(status, "currentMetrics")],
        _BEHAVIOUR: None if behaviour is None else old_behaviour(behaviour),
        _CONDITIONS: _list(status, "conditions"),
    }
    return {name: msgspec.json.encode(content).decode() for name, content in carried.items() if content}


def _new_spec(spec: Value, annotations: Value) -> Value:
    share = spec.get("targetCPUUtilizationPercentage")
    metrics = [new_metric(metric, AIM) for metric in _read(annotations, _METRICS, list[dict[str, Any]]) or ()]
    if share is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": _USUAL_PERCENT if share is None else share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    behaviour = new_behaviour(_read(annotations, _BEHAVIOUR, dict[str, Any]) or {})
    return {"metrics": metrics, "behavior": behaviour} if behaviour else {"metrics": metrics}


def _new_status(status: Value, annotations: Value) -> Value:
    measured = _read(annotations, _MEASURED, list[dict[str, Any]])
    share = status.get("currentCPUUtilizationPercentage")
    seen: list[Value] | None = None
    if measured is not None:
        seen = [new_metric(metric, MEASURED) for metric in measured]
    elif share is not None:
        seen = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": share}}}]
    new: Value = {"desiredReplicas": status.get("desiredReplicas") or 0, "currentMetrics": seen}
    if status.get("currentReplicas"):
        new["currentReplicas"] = status["currentReplicas"]
    conditions = _read(annotations, _CONDITIONS, list[dict[str, Any]])
    return {**new, "conditions": conditions} if conditions else new


def _share(metric: Value, amounts: str) -> Any:
    """The processor's share that a metric is about, in per cent; None if it is about something else."""
    resource = part_of(metric, "resource")
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return part_of(resource, amounts).get("averageUtilization")


def _annotated(value: Value, carried: dict[str, str]) -> Value:
    """The object with these of the annotations that carry something, and no others of them."""
    meta = part_of(value, "metadata")
    had = part_of(meta, "annotations")
    if not carried and not had.keys() & _CARRIERS:
        return value
    kept = {name: text for name, text in had.items() if name not in _CARRIERS}
    rest = {field: content for field, content in meta.items() if field != "annotations"}
    annotations = {**kept, **carried}
    return {**value, "metadata": {**rest, "annotations": annotations} if annotations else rest}


def _list(value: Value, field: str) -> list[Value]:
    found = value.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _read(annotations: Value, name: str, kind: type[T]) -> T | None:
    """What an annotation carries; what cannot be read is as if it were not there."""
    try:
        return msgspec.json.decode(str(annotations.get(name, "")), type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
