"""Admission of ClusterClasses that depends on the Clusters that use them.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/clusterclass.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS
from ironbell.base.listing import listed
from ironbell.contract.admission import FieldProblem, forbidden
from ironbell.contract.admission_lookups import (
    ACCEPTED,
    AdmissionResponse,
    InformedAdmission,
    ListLookup,
    Lookup,
    LookupResults,
)
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.classes.variables import schema_problems
from ironbell.controllers.capi.admission.topology.against_class import (
    autoscaler_problems,
    class_key,
    class_workers,
    has_health_check,
    relies_on_class,
)
from ironbell.controllers.capi.admission.topology.topology import DEPLOYMENTS, POOLS, workers
from ironbell.controllers.capi.topology.variables.values import Schemas
from ironbell.kube.decision import Fields

_ALL_CLUSTERS = ListLookup(CLUSTER)


def class_admission(schemas: Schemas) -> InformedAdmission:
    """Admission of ClusterClasses; `schemas` reads the schemas of variables."""

    def review(new: Fields | None, old: Fields | None, objects: LookupResults) -> AdmissionResponse:
        if new is None:
            return _deletion(old or {}, objects)
        if not _needs_review(new, old):
            return ACCEPTED
        problems = list(schema_problems(new, schemas))
        if old is None:
            return AdmissionResponse(problems)
        clusters = _users(old, objects)
        problems += use_problems(new, old, clusters)
        return AdmissionResponse(problems, list(use_warnings(new, old, clusters)))

    return InformedAdmission(CLUSTER_CLASS, review, _lookups_for_review, deletions=True)


def _needs_review(new: Fields, old: Fields | None) -> bool:
    """Return whether a write concerns this admission; changes to metadata alone do not."""
    return old is None or at(old, "spec") != at(new, "spec")


def _lookups_for_review(new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    return [_ALL_CLUSTERS] if old is not None and (new is None or _needs_review(new, old)) else []


def _users(class_: Fields, objects: LookupResults) -> list[Fields]:
    key = (str(at(class_, "metadata", "namespace") or ""), str(at(class_, "metadata", "name") or ""))
    return [cluster for cluster in objects.all(_ALL_CLUSTERS) if class_key(cluster) == key]


def _deletion(old: Fields, objects: LookupResults) -> AdmissionResponse:
    users = _users(old, objects)
    if not users:
        return ACCEPTED
    return AdmissionResponse(
        forbidden=f"ClusterClass cannot be deleted because it is used by Cluster(s) {_named(users)}; delete those first"
    )


_CLASS_KINDS: Final = {DEPLOYMENTS: "MachineDeploymentClass", POOLS: "MachinePoolClass"}


def _named(clusters: Sequence[Fields]) -> str:
    """The Clusters by namespace and name, sorted; the first few of many."""
    names = sorted(f"{at(cluster, 'metadata', 'namespace')}/{at(cluster, 'metadata', 'name')}" for cluster in clusters)
    return listed(names)


def use_problems(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[FieldProblem]:
    """Check that a class can be changed although these Clusters use it."""
    yield from _version_problems(new, clusters)
    for kind in (DEPLOYMENTS, POOLS):
        yield from _removed_problems(new, old, clusters, kind)
    yield from _health_check_problems(new, old, clusters)
    for cluster in clusters:
        yield from autoscaler_problems(cluster, new)


def use_warnings(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[str]:
    """Warn about changes for which these Clusters have to be changed too."""
    kept = {variable.get("name") for variable in at(new, "spec", "variables") or ()}
    for variable in at(old, "spec", "variables") or ():
        name = variable.get("name")
        users = [cluster for cluster in clusters if name in _set_variables(cluster)]
        if name not in kept and users:
            yield (
                f"variable {name} was removed from the ClusterClass but is set in Cluster(s) {_named(users)}. Remove it"
                " from them; they are not reconciled until then"
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
            detail = f"version {version} must stay in the list: it is used by Cluster(s) {_named(users)}"
            yield forbidden("spec.kubernetesVersions", detail)


def _removed_problems(new: Fields, old: Fields, clusters: Sequence[Fields], kind: str) -> Iterator[FieldProblem]:
    for name in sorted(class_workers(old, kind).keys() - class_workers(new, kind).keys()):
        users = [
            cluster
            for cluster in clusters
            if any(worker.get("class") == name for worker in _topology_workers(cluster, kind))
        ]
        if users:
            detail = f'{_CLASS_KINDS[kind]} "{name}" cannot be deleted because it is used by Cluster(s) {_named(users)}'
            yield forbidden(f"spec.workers.{kind}", detail)


def _health_check_problems(new: Fields, old: Fields, clusters: Sequence[Fields]) -> Iterator[FieldProblem]:
    plane = at(old, "spec", "controlPlane"), at(new, "spec", "controlPlane")
    if has_health_check(plane[0]) and not has_health_check(plane[1]):
        users = [cluster for cluster in clusters if relies_on_class(at(cluster, "spec", "topology", "controlPlane"))]
        yield from _still_used("spec.controlPlane.healthCheck", users)
    old_workers = class_workers(old, DEPLOYMENTS)
    for name, worker_class in class_workers(new, DEPLOYMENTS).items():
        if not has_health_check(old_workers.get(name)) or has_health_check(worker_class):
            continue
        users = [
            cluster
            for cluster in clusters
            if any(
                worker.get("class") == name and relies_on_class(worker)
                for worker in _topology_workers(cluster, DEPLOYMENTS)
            )
        ]
        yield from _still_used(f"spec.workers.{DEPLOYMENTS}[{name}].healthCheck", users)


def _still_used(path: str, users: Sequence[Fields]) -> Iterator[FieldProblem]:
    if users:
        yield forbidden(path, f"healthCheck cannot be deleted because it is used by Cluster(s) {_named(users)}")


def _topology_workers(cluster: Fields, kind: str) -> list[Fields]:
    return [worker for worker, _ in workers(at(cluster, "spec", "topology"), kind)]


def _set_variables(cluster: Fields) -> set[Any]:
    topology = at(cluster, "spec", "topology")
    sets = [at(topology, "variables"), at(topology, "controlPlane", "variables", "overrides")]
    for kind in (DEPLOYMENTS, POOLS):
        sets += [at(worker, "variables", "overrides") for worker in _topology_workers(cluster, kind)]
    return {variable.get("name") for variables in sets for variable in variables or ()}
