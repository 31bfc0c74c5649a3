"""The TinkerbellMachine as an owner of servers: its markers, its status, and which servers it may claim. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.names import FINALIZER, LABEL_MACHINE_NAME, LABEL_MACHINE_NAMESPACE, LEGACY_FINALIZER
from ironbell.api.capt.tinkerbellmachine import HardwareAffinity, TinkerbellMachine, TinkerbellMachineSpec
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_CLONED_FROM_NAME, LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE
from ironbell.contract.owners import controller_of
from ironbell.contract.selectors import compiled
from ironbell.contract.servers.wipe_due import UNKNOWN
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.provisioner.claims_from import UNSET, ClaimRules
from ironbell.provisioner.lifecycle.host import NodeWish
from ironbell.provisioner.lifecycle.names import QUEUED_IN, hardware_key
from ironbell.provisioner.lifecycle.observe import Lifecycle
from ironbell.provisioner.lifecycle.owner import OwnerKind, OwnerStatus
from ironbell.provisioner.lifecycle.selection import Wish
from ironbell.workload.clusterkey import ClusterKey


def _status_of(obj: TinkerbellMachine) -> OwnerStatus:
    status, server = obj.status, None
    if obj.spec.hardware_name:
        by_name = (status.target_namespace or obj.metadata.namespace, obj.spec.hardware_name)
        server = hardware_key(obj.spec.provider_id) or by_name
    return OwnerStatus(server, status.ready, status.instance_state, status.conditions)


def _requirements_digest(obj: TinkerbellMachine) -> str:
    failure_domain = obj.metadata.annotations.get(QUEUED_IN, "")
    requirements = (obj.spec.hardware_affinity, obj.spec.hardware_requirements, failure_domain)
    return hashlib.sha256(msgspec.json.encode(requirements)).hexdigest()[:16]


def _cluster_of(obj: TinkerbellMachine) -> Key:
    return obj.metadata.namespace, obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")


OWNERS: Final = OwnerKind(
    kind=TINKERBELL_MACHINE,
    finalizer=FINALIZER,
    former_finalizer=LEGACY_FINALIZER,
    name_label=LABEL_MACHINE_NAME,
    namespace_label=LABEL_MACHINE_NAMESPACE,
    status_of=_status_of,
    wish_key=_requirements_digest,
    cluster_of=_cluster_of,
    replaced="Machine",
)
LIFECYCLE: Final = Lifecycle(OWNERS)


def wish(
    spec: TinkerbellMachineSpec,
    *,
    failure_domain_label: str = "",
    failure_domain: str = "",
    cluster: str = "",
    namespace: str = "",
    claims: ClaimRules = UNSET,
) -> Wish:
    """Return which servers a TinkerbellMachine with this spec may claim.

    Raises:
        SelectorError: a label selector of spec.hardwareAffinity is not valid.
    """
    affinity = spec.hardware_affinity or HardwareAffinity()
    return Wish(
        tuple(compiled(term.label_selector) for term in affinity.required),
        tuple((term.weight, compiled(term.hardware_affinity_term.label_selector)) for term in affinity.preferred),
        spec.hardware_requirements,
        failure_domain_label,
        failure_domain if failure_domain_label else "",
        cluster,
        namespace,
        claims,
    )


def node_wish(machine: Machine | None, cluster: Cluster | None) -> NodeWish | None:
    """Return the Node that a Machine waits for, or has."""
    if machine is None or cluster is None:
        return None
    is_initialized = bool(cluster.status.initialization.control_plane_initialized)
    initialized = find_condition(cluster.status.conditions, "ControlPlaneInitialized")
    name = machine.status.node_ref.name
    return NodeWish(
        cluster=ClusterKey.of(cluster),
        machine=machine.metadata.name,
        name=name,
        is_ready=bool(name) and is_true(machine.status.conditions, "NodeReady"),
        is_awaited=is_initialized or not cluster.spec.control_plane_ref.name,
        awaited_since=(initialized.last_transition_time if initialized is not None else None) or "",
        is_first=LABEL_CONTROL_PLANE in machine.metadata.labels and not is_initialized,
    )


def cluster_key(obj: TinkerbellMachine, cluster: Cluster | None) -> ClusterKey:
    """Return the key of a TinkerbellMachine's Cluster, even if that no longer exists."""
    namespace, name = _cluster_of(obj)
    return ClusterKey(namespace, name or UNKNOWN, "") if cluster is None else ClusterKey.of(cluster)


def owner_text(machine: Machine | None) -> str:
    """Return the owner that replaces a Machine, as `KIND NAMESPACE/NAME`; empty without an owner."""
    owner = controller_of(machine) if machine is not None else None
    return f"{owner.kind} {machine.metadata.namespace}/{owner.name}" if machine is not None and owner else ""


def template_of(obj: TinkerbellMachine) -> str:
    """Return the name of the template that a TinkerbellMachine was created from."""
    return obj.metadata.annotations.get(ANNOTATION_CLONED_FROM_NAME, "")
