"""Defaults and validation of MachineDeployments.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machinedeployment.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ironbell.api.cluster import MACHINE_DEPLOYMENT
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_DEPLOYMENT_NAME
from ironbell.contract.admission import Admission, FieldProblem, invalid
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at, put, replica_problems, with_replicas
from ironbell.controllers.capi.admission.machineset import skipped_check_problems, template_problems
from ironbell.controllers.capi.machinedeployment.limits import ROLLING_UPDATE, NoIntOrPercentError, scaled
from ironbell.kube.decision import Fields

_STRATEGY: Final = ("spec", "rollout", "strategy")
_ROLLING: Final = (*_STRATEGY, "rollingUpdate")


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a MachineDeployment with defaults for all unset fields."""
    cluster = at(new, "spec", "clusterName")
    new = checks.with_cluster_label(new)
    new = with_replicas(new, old)
    if not at(new, *_STRATEGY, "type"):
        new = put(new, ROLLING_UPDATE, *_STRATEGY, "type")
    if at(new, *_STRATEGY, "type") == ROLLING_UPDATE:
        for name, value in (("maxSurge", 1), ("maxUnavailable", 0)):
            if at(new, *_ROLLING, name) is None:
                new = put(new, value, *_ROLLING, name)
    selector = at(new, "spec", "selector") or {}
    is_selector = isinstance(selector, Mapping)  # anything else is left to the schema, which rejects it
    labels = {LABEL_CLUSTER_NAME: cluster} if cluster and is_selector else {}
    if is_selector and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        labels[LABEL_DEPLOYMENT_NAME] = at(new, "metadata", "name")
    for name, value in labels.items():
        new = put(new, value, "spec", "selector", "matchLabels", name)
        new = put(new, value, "spec", "template", "metadata", "labels", name)
    return checks.with_v(new, "spec", "template", "spec", "version")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a MachineDeployment."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    yield from checks.name_problems(new)
    yield from checks.bootstrap_problems(at(new, "spec") or {})
    yield from checks.selector_problems(new)
    yield from skipped_check_problems(new)
    yield from checks.cluster_name_problems(new, old)
    yield from replica_problems(new)
    yield from rolling_problems(at(new, *_ROLLING), ".".join(_ROLLING))
    yield from count_problems(at(new, "spec", "remediation", "maxInFlight"), "spec.remediation.maxInFlight")
    yield from template_problems(new)


def rolling_problems(rolling: Any, path: str) -> Iterator[FieldProblem]:
    """Check the numbers of additional and of missing Machines during a rollout."""
    surge, unavailable = at(rolling, "maxSurge"), at(rolling, "maxUnavailable")
    yield from count_problems(unavailable, f"{path}.maxUnavailable")
    yield from count_problems(surge, f"{path}.maxSurge")
    if surge == 0 and unavailable == 0:
        yield invalid(path, "0", "maxUnavailable and maxSurge cannot both be 0")


def count_problems(value: Any, path: str) -> Iterator[FieldProblem]:
    """Check a whole number or a percentage, if it is set."""
    try:
        scaled(value, 0, round_up=False)
    except NoIntOrPercentError as error:
        yield invalid(path, str(value), f"must be either an int or a percentage: {error}")


ADMISSION: Final = Admission(MACHINE_DEPLOYMENT, default, validate)
