"""Defaults and validation of ClusterResourceSets and their bindings.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterresourceset.go, clusterresourcesetbinding.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.api.addons import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from ironbell.base.labels import SelectorError
from ironbell.contract.admission import Admission, FieldProblem, invalid, unchanged
from ironbell.contract.selectors import PlainSelector, compiled
from ironbell.controllers.capi.admission.checks import at, put
from ironbell.kube.decision import Fields

APPLY_ONCE: Final = "ApplyOnce"


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a ClusterResourceSet with a strategy."""
    return new if at(new, "spec", "strategy") else put(new, APPLY_ONCE, "spec", "strategy")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a ClusterResourceSet."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    selector = at(new, "spec", "clusterSelector") or {}
    try:
        if not compiled(PlainSelector.of(selector)).requirements:
            yield invalid("spec.clusterSelector", selector, "selector must not be empty")
    except SelectorError as error:
        yield invalid("spec.clusterSelector", selector, error.message)
    if old is None:
        return
    strategy, old_strategy = at(new, "spec", "strategy"), at(old, "spec", "strategy")
    if old_strategy and old_strategy != strategy:
        yield invalid("spec.strategy", strategy, "field is immutable")
    if selector != (at(old, "spec", "clusterSelector") or {}):
        yield invalid("spec.clusterSelector", selector, "field is immutable")


def validate_binding(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a ClusterResourceSetBinding."""
    name, old_name = at(new, "spec", "clusterName"), at(old, "spec", "clusterName")
    return [invalid("spec.clusterName", name, "field is immutable")] if old_name and old_name != name else []


ADMISSION: Final = Admission(CLUSTER_RESOURCE_SET, default, validate)
BINDING_ADMISSION: Final = Admission(CLUSTER_RESOURCE_SET_BINDING, unchanged, validate_binding)
