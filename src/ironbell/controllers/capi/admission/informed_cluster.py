"""Admission of Clusters that depends on their class and on the objects of the Cluster.

An update that does not change the topology is not reviewed again: later changes of the class do not prevent a user from
labelling a Cluster, nor a controller from removing its finalizer. The topology controller checks the variables on every
reconciliation.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/cluster.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL
from ironbell.api.cluster.names import (
    ANNOTATION_UNSAFE_CLASS_NAME,
    ANNOTATION_UNSAFE_VERSION,
    LABEL_CLUSTER_NAME,
    LABEL_TOPOLOGY_OWNED,
)
from ironbell.contract.admission import FieldProblem, forbidden, invalid
from ironbell.contract.admission_lookups import (
    ACCEPTED,
    AdmissionResponse,
    InformedAdmission,
    ListLookup,
    Lookup,
    LookupResults,
    ObjectLookup,
    ReferenceLookup,
)
from ironbell.controllers.capi.admission.checks import at
from ironbell.controllers.capi.admission.classes.clusterclass import compatibility_problems
from ironbell.controllers.capi.admission.topology.against_class import (
    class_key,
    class_problems,
    is_reconciled,
    variable_problems,
    with_variables,
)
from ironbell.controllers.capi.admission.topology.changes import Running, version_changes, version_problems
from ironbell.controllers.capi.admission.topology.topology import ROOT, has_topology
from ironbell.controllers.capi.topology.variables.values import Schemas
from ironbell.kube.decision import Fields

_CLASS_PATH = f"{ROOT}.classRef"


def cluster_admission(schemas: Schemas) -> InformedAdmission:
    """Admission of Clusters; `schemas` reads the schemas of variables."""

    def default(new: Fields, old: Fields | None, objects: LookupResults) -> Fields:
        if not _needs_review(new, old):
            return new
        class_ = objects.get(_class_lookup(new))
        return new if class_ is None or not is_reconciled(class_) else with_variables(new, class_, schemas)

    def review(new: Fields | None, old: Fields | None, objects: LookupResults) -> AdmissionResponse:
        if new is None or not _needs_review(new, old):
            return ACCEPTED
        class_ = objects.get(_class_lookup(new))
        problems: list[FieldProblem] = []
        if class_ is not None:
            problems += class_problems(new, class_)
            if is_reconciled(class_):
                problems += variable_problems(new, old, class_, schemas)
        if old is not None:
            problems += _change_problems(new, old, class_, objects)
        return AdmissionResponse(problems, list(_warnings(new, old, class_)))

    return InformedAdmission(CLUSTER, review, _lookups_for_review, default, _lookups_for_defaults)


def _needs_review(new: Fields, old: Fields | None) -> bool:
    if not class_key(new)[1] or at(new, "metadata", "deletionTimestamp"):
        return False
    return old is None or at(old, "spec", "topology") != at(new, "spec", "topology")


def _class_lookup(cluster: Fields) -> ObjectLookup:
    """Lookup of the class, once its variables are ready: it may have been written a moment ago."""
    return ObjectLookup(CLUSTER_CLASS, *class_key(cluster), until=is_reconciled)


def _old_class_lookup(cluster: Fields) -> ObjectLookup:
    return ObjectLookup(CLUSTER_CLASS, *class_key(cluster))


def _lookups_for_defaults(new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    return [_class_lookup(new)] if new is not None and _needs_review(new, old) else []


def _lookups_for_review(new: Fields | None, old: Fields | None) -> Sequence[Lookup]:
    if new is None or not _needs_review(new, old):
        return []
    lookups: list[Lookup] = [_class_lookup(new)]
    if old is None or not has_topology(old):
        return lookups
    if class_key(old) != class_key(new):
        lookups.append(_old_class_lookup(old))
    if version_changes(new, old) is not None and not _has_annotation(new, ANNOTATION_UNSAFE_VERSION):
        lookups += [_control_plane(old), *_workers(old)]
    return lookups


def _control_plane(old: Fields) -> ReferenceLookup:
    reference, namespace = at(old, "spec", "controlPlaneRef"), _namespace(old)
    parts = [str(at(reference, name) or "") for name in ("apiGroup", "kind", "name")]
    return ReferenceLookup(parts[0], parts[1], namespace, parts[2])


def _workers(old: Fields) -> tuple[ListLookup, ListLookup, ListLookup]:
    labels = f"{LABEL_CLUSTER_NAME}={at(old, 'metadata', 'name')}"
    owned = f"{labels},{LABEL_TOPOLOGY_OWNED}"
    namespace = _namespace(old)
    return (
        ListLookup(MACHINE_DEPLOYMENT, namespace, owned),
        ListLookup(MACHINE_POOL, namespace, owned),
        ListLookup(MACHINE, namespace, labels),
    )


def _change_problems(new: Fields, old: Fields, class_: Fields | None, objects: LookupResults) -> Iterator[FieldProblem]:
    name = "/".join(class_key(new))
    if class_ is None:
        yield invalid(_CLASS_PATH, name, f"ClusterClass {name} not found: create it, or name one that exists")
        return
    if not class_key(old)[1]:
        if not _has_annotation(new, ANNOTATION_UNSAFE_CLASS_NAME):
            detail = f"cannot be set on an existing Cluster without the annotation {ANNOTATION_UNSAFE_CLASS_NAME}"
            yield forbidden(_CLASS_PATH, detail)
        return
    if not _has_annotation(new, ANNOTATION_UNSAFE_VERSION):
        deployments, pools, machines = (objects.all(lookup) for lookup in _workers(old))
        running = Running(objects.get(_control_plane(old)), deployments, pools, machines)
        leaps = bool(at(class_, "spec", "kubernetesVersions"))
        yield from version_problems(new, old, leaps=leaps, running=running)
    if class_key(old) != class_key(new):
        old_class = objects.get(_old_class_lookup(old))
        if old_class is None:
            old_name = "/".join(class_key(old))
            detail = (
                f"cannot be changed from {old_name} to {name}: they cannot be compared, because ClusterClass"
                f" {old_name} does not exist"
            )
            yield forbidden(_CLASS_PATH, detail)
            return
        yield from compatibility_problems(at(old_class, "spec") or {}, at(class_, "spec") or {})


def _warnings(new: Fields, old: Fields | None, class_: Fields | None) -> Iterator[str]:
    name = "/".join(class_key(new))
    if class_ is None:
        yield (
            f"Cluster refers to ClusterClass {name}, but this ClusterClass does not exist. Cluster topology has not"
            " been fully validated. The ClusterClass must be created to reconcile the Cluster"
        )
    elif not is_reconciled(class_):
        yield (
            f"Cluster refers to ClusterClass {name}, but this ClusterClass hasn't been successfully reconciled. Cluster"
            " topology has not been fully validated. Please take a look at the ClusterClass status"
        )
    if class_ is not None and old is not None and _has_annotation(new, ANNOTATION_UNSAFE_VERSION):
        yield (f'Skipping version validation for Cluster because annotation "{ANNOTATION_UNSAFE_VERSION}" is set.')


def _has_annotation(cluster: Fields, name: str) -> bool:
    return name in (at(cluster, "metadata", "annotations") or {})


def _namespace(cluster: Fields) -> str:
    return str(at(cluster, "metadata", "namespace") or "")
