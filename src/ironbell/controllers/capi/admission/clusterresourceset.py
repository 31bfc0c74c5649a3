"""ClusterResourceSets and their bindings as they are written: what is filled in, and what is refused.

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
    """A ClusterResourceSet with a strategy."""
    return new if at(new, "spec", "strategy") else put(new, APPLY_ONCE, "spec", "strategy")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """What is wrong with a ClusterResourceSet."""
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
    strategy, before = at(new, "spec", "strategy"), at(old, "spec", "strategy")
    if before and before != strategy:
        yield invalid("spec.strategy", strategy, "field is immutable")
    if selector != (at(old, "spec", "clusterSelector") or {}):
        yield invalid("spec.clusterSelector", selector, "field is immutable")


def validate_binding(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """What is wrong with a ClusterResourceSetBinding."""
    name, before = at(new, "spec", "clusterName"), at(old, "spec", "clusterName")
    return [invalid("spec.clusterName", name, "field is immutable")] if before and before != name else []


ADMISSION: Final = Admission(CLUSTER_RESOURCE_SET, default, validate)
BINDING_ADMISSION: Final = Admission(CLUSTER_RESOURCE_SET_BINDING, unchanged, validate_binding)
