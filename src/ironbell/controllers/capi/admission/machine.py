"""Defaults and validation of Machines.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machine.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE, LABEL_POOL_NAME
from ironbell.contract.admission import Admission, FieldProblem, forbidden, required
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at, put
from ironbell.kube.decision import Fields

NODE_DELETION_TIMEOUT_S: Final = 10
NO_BOOTSTRAP: Final = "expected either spec.bootstrap.dataSecretName or spec.bootstrap.configRef to be populated"


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a Machine with defaults for all unset fields.

    Upstream requires `spec.clusterName`. Manifests from before 2019 name the cluster by the label alone.
    """
    if not at(new, "spec", "clusterName") and (name := at(new, "metadata", "labels", LABEL_CLUSTER_NAME)):
        new = put(new, name, "spec", "clusterName")
    new = put(new, at(new, "spec", "clusterName"), "metadata", "labels", LABEL_CLUSTER_NAME)
    new = checks.with_v(new, "spec", "version")
    path = ("spec", "deletion", "nodeDeletionTimeoutSeconds")
    return put(new, NODE_DELETION_TIMEOUT_S, *path) if at(new, *path) is None else new


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a Machine."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    spec, labels = at(new, "spec") or {}, at(new, "metadata", "labels") or {}
    has_bootstrap = at(spec, "bootstrap", "configRef", "name") or at(spec, "bootstrap", "dataSecretName") is not None
    if not has_bootstrap and not _belongs_to_pool(new):
        yield required("spec.bootstrap", NO_BOOTSTRAP)
    if old is not None and at(old, "spec", "clusterName") != spec.get("clusterName"):
        yield forbidden("spec.clusterName", "field is immutable")
    yield from checks.version_problems(spec.get("version"), "spec.version")
    worker = LABEL_CONTROL_PLANE not in labels
    yield from checks.taint_problems(spec.get("taints"), "spec.taints", worker=worker)


def _belongs_to_pool(machine: Fields) -> bool:
    """Return whether the bootstrap config belongs to a MachinePool."""
    if LABEL_POOL_NAME in (at(machine, "metadata", "labels") or {}):
        return True
    return any(owner.get("kind") == "MachinePool" for owner in at(machine, "metadata", "ownerReferences") or ())


ADMISSION: Final = Admission(MACHINE, default, validate)
