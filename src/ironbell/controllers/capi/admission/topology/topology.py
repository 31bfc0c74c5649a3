"""Validation of a Cluster's topology without its class.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/cluster.go (validateTopology).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ironbell.api.cluster.names import (
    ANNOTATION_AUTOSCALER_MAX_SIZE,
    ANNOTATION_AUTOSCALER_MIN_SIZE,
    ANNOTATION_UPGRADE_CONCURRENCY,
)
from ironbell.base.quantities import decimal
from ironbell.contract.admission import FieldProblem, invalid
from ironbell.contract.clusters.versions import find_version
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.machinedeployment import count_problems, rolling_problems
from ironbell.controllers.capi.admission.machinehealthcheck import limit_problems
from ironbell.kube.decision import Fields

ROOT: Final = "spec.topology"
DEPLOYMENTS: Final = "machineDeployments"
POOLS: Final = "machinePools"
_AUTOSCALER: Final = (ANNOTATION_AUTOSCALER_MIN_SIZE, ANNOTATION_AUTOSCALER_MAX_SIZE)


def has_topology(cluster: Fields | None) -> bool:
    """Return whether a Cluster has a topology."""
    return bool(at(cluster, "spec", "topology"))


def workers(topology: Any, kind: str) -> Iterator[tuple[Fields, str]]:
    """The MachineDeployments or MachinePools of a topology, each with its path."""
    for worker in at(topology, "workers", kind) or ():
        if isinstance(worker, dict):
            yield worker, f"{ROOT}.workers.{kind}[{worker.get('name', '')}]"


def is_autoscaled(metadata: Any) -> bool:
    """Return whether annotations set bounds for the autoscaler."""
    annotations = at(metadata, "annotations")
    return isinstance(annotations, Mapping) and any(name in annotations for name in _AUTOSCALER)


def topology_problems(cluster: Fields) -> Iterator[FieldProblem]:
    """Return the problems of a Cluster's topology."""
    topology = at(cluster, "spec", "topology")
    yield from _version_problems(str(at(topology, "version") or ""))
    plane = at(topology, "controlPlane")
    yield from checks.metadata_problems(at(plane, "metadata"), f"{ROOT}.controlPlane.metadata")
    yield from checks.taint_problems(at(plane, "taints"), f"{ROOT}.controlPlane.taints", worker=False)
    yield from limit_problems(at(plane, "healthCheck"), f"{ROOT}.controlPlane.healthCheck")
    for kind in (DEPLOYMENTS, POOLS):
        for worker, path in workers(topology, kind):
            yield from checks.metadata_problems(worker.get("metadata"), f"{path}.metadata")
            yield from checks.taint_problems(worker.get("taints"), f"{path}.taints")
    for worker, path in workers(topology, DEPLOYMENTS):
        rolling = at(worker, "rollout", "strategy", "rollingUpdate")
        yield from rolling_problems(rolling, f"{path}.rollout.strategy.rollingUpdate")
        check = worker.get("healthCheck")
        yield from limit_problems(check, f"{path}.healthCheck")
        limit = at(check, "remediation", "maxInFlight")
        yield from count_problems(limit, f"{path}.healthCheck.remediation.maxInFlight")
        if worker.get("replicas") is not None and is_autoscaled(worker.get("metadata")):
            detail = "cannot be set while metadata.annotations has bounds for the autoscaler: remove one of them"
            yield invalid(f"{path}.replicas", worker["replicas"], detail)
    yield from _concurrency_problems(at(cluster, "metadata", "annotations"))


def _version_problems(version: str) -> Iterator[FieldProblem]:
    path = f"{ROOT}.version"
    if not version.startswith("v"):
        yield invalid(path, version, "must start with v")
    parsed = find_version(version)
    if parsed is None or str(parsed) != version.removeprefix("v"):
        yield invalid(path, version, "version must be a valid semantic version")


def _concurrency_problems(annotations: Any) -> Iterator[FieldProblem]:
    text = at(annotations, ANNOTATION_UPGRADE_CONCURRENCY)
    if text is None:
        return
    path, digits = f"metadata.annotations.{ANNOTATION_UPGRADE_CONCURRENCY}", str(text).removeprefix("+")
    number = decimal(digits.removeprefix("-"))
    if number is None:
        yield invalid(path, text, "could not parse the value of the annotation: expected a whole number")
    elif digits.startswith("-") or number < 1:
        yield invalid(path, text, "value cannot be less than 1")
