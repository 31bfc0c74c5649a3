"""Defaults and validation of MachinePools.

Source: kubernetes-sigs/cluster-api: core/webhooks/admission/machinepool.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ironbell.api.cluster import MACHINE_POOL
from ironbell.contract.admission import Admission, FieldProblem, forbidden
from ironbell.controllers.capi.admission import checks
from ironbell.controllers.capi.admission.checks import at, put, replica_problems, with_replicas
from ironbell.kube.decision import Fields

_NODE_DELETION_TIMEOUT: Final = ("spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds")
_NODE_DELETION_TIMEOUT_S: Final = 10


def default(new: Fields, old: Fields | None) -> Fields:
    """Return a MachinePool with defaults for all unset fields."""
    new = checks.with_cluster_label(new)
    new = with_replicas(new, old)
    if at(new, *_NODE_DELETION_TIMEOUT) is None:
        new = put(new, _NODE_DELETION_TIMEOUT_S, *_NODE_DELETION_TIMEOUT)
    return checks.with_v(new, "spec", "template", "spec", "version")


def validate(new: Fields, old: Fields | None) -> list[FieldProblem]:
    """Return the problems of a MachinePool."""
    return list(_problems(new, old))


def _problems(new: Fields, old: Fields | None) -> Iterator[FieldProblem]:
    yield from checks.bootstrap_problems(at(new, "spec") or {})
    yield from checks.cluster_name_problems(new, old)
    yield from replica_problems(new)
    template = at(new, "spec", "template")
    yield from checks.version_problems(at(template, "spec", "version"), "spec.template.spec.version")
    if at(template, "spec", "taints"):
        yield forbidden("spec.taints", "taints feature for MachinePools is not yet implemented")
    yield from checks.metadata_problems(at(template, "metadata"), "spec.template.metadata")


ADMISSION: Final = Admission(MACHINE_POOL, default, validate)
