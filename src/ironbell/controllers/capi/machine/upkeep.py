"""Metadata that every Machine needs: its finalizer, its cluster's label, an owner; and the expiry of its certificates.
Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (reconcileMachineOwnerAndLabels,
shouldAdopt), machine_controller_phases.go (reconcileCertificateExpiry).
"""

from __future__ import annotations

from datetime import datetime

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import (
    ANNOTATION_CERTIFICATES_EXPIRY,
    FINALIZER_MACHINE,
    LABEL_CLUSTER_NAME,
    LABEL_CONTROL_PLANE,
    LABEL_CONTROL_PLANE_NAME,
    LABEL_POOL_NAME,
    LABEL_SET_NAME,
)
from ironbell.api.unstructured import Unstructured
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.owners import controller_of, group_of, owner_reference, with_owner
from ironbell.controllers.capi.machine.draft import Draft, replace

_OF_SOMETHING = (LABEL_SET_NAME, LABEL_POOL_NAME, LABEL_CONTROL_PLANE_NAME)


def belong(draft: Draft, cluster: Cluster | None) -> None:
    """Set the finalizer, the label, and the Cluster as owner of a Machine that no other owner created."""
    meta = draft.metadata
    labels = {**meta.labels, LABEL_CLUSTER_NAME: draft.spec.cluster_name}
    finalizers = meta.finalizers
    if FINALIZER_MACHINE not in finalizers and not draft.is_deleting:
        finalizers = [*finalizers, FINALIZER_MACHINE]
    owners = meta.owner_references
    if cluster is not None and _is_alone(draft.machine):
        owners = with_owner(owners, owner_reference(CLUSTER, cluster))
    draft.metadata = replace(meta, labels=labels, finalizers=finalizers, owner_references=owners)


def record_certificate_expiry(draft: Draft, bootstrap: Unstructured | None) -> None:
    """Record when a control plane Machine's certificates expire, by its own annotation or its bootstrap config's."""
    if LABEL_CONTROL_PLANE not in draft.metadata.labels:
        return
    written = draft.metadata.annotations.get(ANNOTATION_CERTIFICATES_EXPIRY)
    if written is None and bootstrap is not None:
        written = bootstrap.metadata.annotations.get(ANNOTATION_CERTIFICATES_EXPIRY)
    moment = _moment(written)
    if written is not None and moment is None:
        return
    draft.status = replace(draft.status, certificates_expiry_date=rfc3339(moment) if moment is not None else None)


def _moment(written: str | None) -> datetime | None:
    try:
        return None if written is None else parse_rfc3339(written)
    except ValueError:
        return None


def _is_alone(machine: Machine) -> bool:
    """Return whether no MachineSet, MachinePool or control plane created the Machine, and could adopt it."""
    if controller_of(machine) is not None or any(label in machine.metadata.labels for label in _OF_SOMETHING):
        return False
    return not any(
        (group_of(owner.api_version), owner.kind) == (CLUSTER.group, CLUSTER.kind)
        for owner in machine.metadata.owner_references
    )
