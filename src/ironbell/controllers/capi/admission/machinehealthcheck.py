"""Defaults and validation of MachineHealthChecks.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machinehealthcheck.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ironbell.api.cluster import MACHINE_HEALTH_CHECK
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.base.labels import SelectorError
from ironbell.contract.admission import Admission, FieldProblem, forbidden, invalid, required
from ironbell.contract.selectors import PlainSelector, compiled
from ironbell.controllers.capi.admission.checks import at, put
from ironbell.controllers.capi.machinehealthcheck.checks import DEFAULT_NODE_STARTUP_TIMEOUT_S
from ironbell.controllers.capi.machinehealthcheck.limits import scaled
from ironbell.kube.decision import Fields

LEAST_STARTUP_S: Final = 30
"""Shortest time limit for the startup of a node; 0 disables the limit."""
_STARTUP: Final = ("checks", "nodeStartupTimeoutSeconds")
_MOST: Final = ("remediation", "triggerIf", "unhealthyLessThanOrEqualTo")


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a MachineHealthCheck with defaults for all unset fields."""
    new = put(new, at(new, "spec", "clusterName"), "metadata", "labels", LABEL_CLUSTER_NAME)
    startup = ("spec", *_STARTUP)
    return put(new, DEFAULT_NODE_STARTUP_TIMEOUT_S, *startup) if at(new, *startup) is None else new


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a MachineHealthCheck."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    yield from _selector_problems(new)
    if old is not None and at(old, "spec", "clusterName") != at(new, "spec", "clusterName"):
        yield forbidden("spec.clusterName", "field is immutable")
    yield from limit_problems(at(new, "spec"), "spec")


def limit_problems(check: Any, path: str) -> Iterator[FieldProblem]:
    """Check the time limit and the number of unhealthy Machines, in a health check or in a class's health check."""
    startup_s = at(check, *_STARTUP)
    if startup_s is not None and 0 != startup_s < LEAST_STARTUP_S:
        yield invalid(f"{path}.{'.'.join(_STARTUP)}", startup_s, f"must be at least {LEAST_STARTUP_S}s")
    limit = at(check, *_MOST)
    if limit is not None and scaled(limit, 0) is None:
        yield invalid(f"{path}.{'.'.join(_MOST)}", limit, "must be either an int or a percentage")


def _selector_problems(new: Fields) -> Iterator[FieldProblem]:
    plain = at(new, "spec", "selector") or {}
    try:
        selector = compiled(PlainSelector.of(plain))
    except SelectorError as error:
        yield invalid("spec.selector", plain, error.message)
    else:
        if not selector.requirements:
            yield required("spec.selector", "selector must not be empty")
    named = at(plain, "matchLabels", LABEL_CLUSTER_NAME)
    if named is not None and named != at(new, "spec", "clusterName"):
        other = "cannot specify a cluster selector other than the one specified by ClusterName"
        yield invalid("spec.selector", plain, other)


ADMISSION: Final = Admission(MACHINE_HEALTH_CHECK, default, validate)
