"""Validation of MachineDrainRules.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machinedrainrules.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.api.cluster import MACHINE_DRAIN_RULE
from ironbell.base.labels import SelectorError
from ironbell.contract.admission import Admission, FieldProblem, invalid, unchanged
from ironbell.contract.selectors import PlainSelector, compiled
from ironbell.controllers.capi.admission.checks import at
from ironbell.kube.decision import Fields

_SELECTORS: Final = {"machines": ("selector", "clusterSelector"), "pods": ("selector", "namespaceSelector")}


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a MachineDrainRule."""
    return list(_problems(new))


def _problems(new: Fields) -> Iterator[FieldProblem]:
    behavior, order = at(new, "spec", "drain", "behavior"), at(new, "spec", "drain", "order")
    if order is not None and behavior in ("Skip", "WaitCompleted"):
        detail = 'order must not be set if drain behavior is "Skip" or "WaitCompleted"'
        yield invalid("spec.drain.order", order, detail)
    for where, fields in _SELECTORS.items():
        for number, item in enumerate(at(new, "spec", where) or ()):
            for field in fields:
                yield from _selector_problems(item.get(field), f"spec.{where}[{number}].{field}")


def _selector_problems(plain: Fields | None, path: str) -> Iterator[FieldProblem]:
    if plain is None:
        return
    try:
        compiled(PlainSelector.of(plain))
    except SelectorError as error:
        yield invalid(path, plain, error.message)


ADMISSION: Final = Admission(MACHINE_DRAIN_RULE, unchanged, validate)
