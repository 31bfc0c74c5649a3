"""The control plane of a topology, before patches.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (computeControlPlane).
"""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.meta import OwnerReference
from ironbell.contract.clusters.references import V1BETA1
from ironbell.contract.fields import texts_at
from ironbell.controllers.capi.topology.desired.model import Blueprint
from ironbell.controllers.capi.topology.desired.objects import (
    clone_of,
    first_list,
    first_set,
    joined,
    owned_labels,
    reference_to,
    versioned_reference_to,
)
from ironbell.controllers.capi.topology.plain import put
from ironbell.kube.decision import Fields

_TIMEOUTS = ("nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout")


def control_plane(
    blueprint: Blueprint,
    cluster: Cluster,
    machine_template: Fields | None,
    *,
    name: str,
    version: str,
    owner: OwnerReference,
) -> Fields:
    """The control plane object; the template of its machines' infrastructure is `machine_template`, if it has any.

    Raises:
        TopologyError: the template has no `spec.template`.
    """
    topology, class_ = cluster.spec.topology.control_plane, blueprint.cluster_class.spec.control_plane
    labels, annotations = joined(topology.metadata, class_.metadata)
    obj = clone_of(blueprint.control_plane, cluster, name, owner=owner, labels=labels, annotations=annotations)
    is_older = blueprint.control_plane_contract == V1BETA1
    machines = ("spec", "machineTemplate") if is_older else ("spec", "machineTemplate", "spec")
    if machine_template is not None:
        reference = versioned_reference_to(machine_template) if is_older else reference_to(machine_template)
        obj = put(obj, reference, (*machines, "infrastructureRef"))
        metadata = ("spec", "machineTemplate", "metadata")
        all_labels = {**texts_at(obj, *metadata, "labels"), **labels, **owned_labels(cluster)}
        all_annotations = {**texts_at(obj, *metadata, "annotations"), **annotations}
        texts: Fields = {"labels": all_labels}
        obj = put(obj, {**texts, "annotations": all_annotations} if all_annotations else texts, metadata)
    if topology.replicas is not None:
        obj = put(obj, topology.replicas, ("spec", "replicas"))
    if topology.rollout.after:
        obj = put(obj, topology.rollout.after, ("spec", "rolloutAfter") if is_older else ("spec", "rollout", "after"))
    for field, values in (
        ("readinessGates", first_list(topology.readiness_gates, class_.readiness_gates)),
        ("taints", first_list(topology.taints, class_.taints)),
    ):
        if values:
            obj = put(obj, values, (*machines, field))
    timeouts = (
        first_set(topology.deletion.node_drain_timeout_seconds, class_.deletion.node_drain_timeout_seconds),
        first_set(
            topology.deletion.node_volume_detach_timeout_seconds, class_.deletion.node_volume_detach_timeout_seconds
        ),
        first_set(topology.deletion.node_deletion_timeout_seconds, class_.deletion.node_deletion_timeout_seconds),
    )
    for field, seconds in zip(_TIMEOUTS, timeouts, strict=True):
        if seconds is not None:
            obj = _with_timeout(obj, field, seconds, is_older=is_older)
    return put(obj, version, ("spec", "version"))


def _with_timeout(obj: Fields, field: str, seconds: int, *, is_older: bool) -> Fields:
    if is_older:
        value: Any = f"{seconds}s"
        return put(obj, value, ("spec", "machineTemplate", field))
    return put(obj, seconds, ("spec", "machineTemplate", "spec", "deletion", f"{field}Seconds"))
