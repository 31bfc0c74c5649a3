"""How many replicas a set of Machines has when nobody says so, with an autoscaler's bounds in mind.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machineset.go (calculateMachineSetReplicas).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.api.cluster.names import ANNOTATION_AUTOSCALER_MAX_SIZE, ANNOTATION_AUTOSCALER_MIN_SIZE
from ironbell.base.numbers import decimal
from ironbell.contract.admission import FieldProblem, invalid
from ironbell.controllers.capi.admission.checks import at, put
from ironbell.kube.decision import Fields

_BOUNDS: Final = (ANNOTATION_AUTOSCALER_MIN_SIZE, ANNOTATION_AUTOSCALER_MAX_SIZE)


def with_replicas(new: Fields, old: Fields | None) -> Fields:
    """The object with `spec.replicas`: as given; else as before within the autoscaler's bounds; else one."""
    if at(new, "spec", "replicas") is not None:
        return new
    bounds = _bounds(new)
    if bounds is None:
        return new if list(replica_problems(new)) else put(new, 1, "spec", "replicas")
    smallest, largest = bounds
    before = at(old, "spec", "replicas") if old is not None else None
    if before is None or before < smallest:
        return put(new, smallest, "spec", "replicas")
    return put(new, min(before, largest), "spec", "replicas")


def replica_problems(new: Fields) -> Iterator[FieldProblem]:
    """Bounds that are needed and cannot be read."""
    annotations = at(new, "metadata", "annotations") or {}
    if at(new, "spec", "replicas") is not None or not all(name in annotations for name in _BOUNDS):
        return
    for name in _BOUNDS:
        if _whole(annotations[name]) is None:
            yield invalid(f"metadata.annotations[{name}]", annotations[name], "must be a whole number")


def _bounds(new: Fields) -> tuple[int, int] | None:
    annotations = at(new, "metadata", "annotations") or {}
    smallest, largest = (_whole(annotations.get(name)) for name in _BOUNDS)
    return None if smallest is None or largest is None else (smallest, largest)


def _whole(text: str | None) -> int | None:
    digits = (text or "").removeprefix("+")
    number = decimal(digits.removeprefix("-"))
    return -number if number is not None and digits.startswith("-") else number
