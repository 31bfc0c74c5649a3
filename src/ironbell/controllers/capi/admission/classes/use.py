"""What Clusters use of a class: that may not be taken out of it.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ironbell.contract.admission import FieldProblem, forbidden
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.topology.against_class import (
    autoscaler_problems,
    class_workers,
    has_health_check,
    relies_on_class,
)
from ironbell.controllers.capi.admission.topology.topology import DEPLOYMENTS, POOLS, workers
from ironbell.kube.decision import Fields

SHOWN: Final = 3
"""How many Clusters are named."""
_WORDS: Final = {DEPLOYMENTS: "MachineDeploymentClass", POOLS: "MachinePoolClass"}


def listed(clusters: Sequence[Fields]) -> str:
    """Clusters by namespace and name; of many the first."""
    names = sorted(f"{at(one, 'metadata', 'namespace')}/{at(one, 'metadata', 'name')}" for one in clusters)
    more = f", … ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def use_problems(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[FieldProblem]:
    """Why a class may not be changed while these Clusters are made from it."""
    yield from _version_problems(new, clusters)
    for kind in (DEPLOYMENTS, POOLS):
        yield from _removed_problems(new, old, clusters, kind)
    yield from _health_check_problems(new, old, clusters)
    for cluster in clusters:
        yield from autoscaler_problems(cluster, new)


def use_warnings(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[str]:
    """What these Clusters will have to be changed for."""
    kept = {one.get("name") for one in at(new, "spec", "variables") or ()}
    for one in at(old, "spec", "variables") or ():
        name = one.get("name")
        users = [cluster for cluster in clusters if name in _set_variables(cluster)]
        if name not in kept and users:
            yield (
                f"variable {name} is gone from the ClusterClass but set in Cluster(s) {listed(users)}: they are not"
                " reconciled until it is taken out of them"
            )


def _version_problems(new: Fields, clusters: Sequence[Fields]) -> Iterator[FieldProblem]:
    versions = at(new, "spec", "kubernetesVersions") or ()
    if not versions:
        return
    by_version: dict[str, list[Fields]] = {}
    for cluster in clusters:
        by_version.setdefault(str(at(cluster, "spec", "topology", "version")), []).append(cluster)
    for version, users in sorted(by_version.items()):
        if version not in versions:
            detail = f"version {version} must stay in the list: it is used by Cluster(s) {listed(users)}"
            yield forbidden("spec.kubernetesVersions", detail)


def _removed_problems(new: Fields, old: Fields, clusters: Sequence[Fields], kind: str) -> Iterator[FieldProblem]:
    for name in sorted(class_workers(old, kind).keys() - class_workers(new, kind).keys()):
        users = [cluster for cluster in clusters if any(one.get("class") == name for one in _workers(cluster, kind))]
        if users:
            detail = f'{_WORDS[kind]} "{name}" cannot be deleted because it is used by Cluster(s) {listed(users)}'
            yield forbidden(f"spec.workers.{kind}", detail)


def _health_check_problems(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[FieldProblem]:
    plane = at(old, "spec", "controlPlane"), at(new, "spec", "controlPlane")
    if has_health_check(plane[0]) and not has_health_check(plane[1]):
        users = [one for one in clusters if relies_on_class(at(one, "spec", "topology", "controlPlane"))]
        yield from _still_used("spec.controlPlane.healthCheck", users)
    before = class_workers(old, DEPLOYMENTS)
    for name, of in class_workers(new, DEPLOYMENTS).items():
        if not has_health_check(before.get(name)) or has_health_check(of):
            continue
        users = [
            cluster
            for cluster in clusters
            if any(one.get("class") == name and relies_on_class(one) for one in _workers(cluster, DEPLOYMENTS))
        ]
        yield from _still_used(f"spec.workers.{DEPLOYMENTS}[{name}].healthCheck", users)


def _still_used(path: str, users: Sequence[Fields]) -> Iterator[FieldProblem]:
    if users:
        yield forbidden(path, f"healthCheck cannot be deleted because it is used by Cluster(s) {listed(users)}")


def _workers(cluster: Fields, kind: str) -> list[Fields]:
    return [one for one, _ in workers(at(cluster, "spec", "topology"), kind)]


def _set_variables(cluster: Fields) -> set[Any]:
    topology = at(cluster, "spec", "topology")
    held = [at(topology, "variables"), at(topology, "controlPlane", "variables", "overrides")]
    for kind in (DEPLOYMENTS, POOLS):
        held += [at(one, "variables", "overrides") for one in _workers(cluster, kind)]
    return {one.get("name") for found in held for one in found or ()}
