"""The Machine's Node: found by provider ID, kept in step with the Machine's labels, annotations and taints. Pure.

Nodes are watched: what is asked here is answered from memory, and comes again when it changes.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_noderef.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import NodeSystemInfo
from ironbell.api.cluster.machine import MachineNodeReference
from ironbell.api.cluster.names import ANNOTATION_REVISION, LABEL_INTERRUPTIBLE
from ironbell.base.numbers import decimal
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.conditions.legacy import ERROR, INFO, WARNING, legacy_true, legacy_unknown
from ironbell.controllers.capi.machine import node_conditions
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason
from ironbell.controllers.capi.machine.node_metadata import Synced, managed_annotations, managed_labels, node_patch
from ironbell.controllers.capi.machine.observed import Observed, cluster_at, node_names
from ironbell.controllers.capi.machine.performers import PATCH_NODE, NodePatch
from ironbell.kube.decision import Effect, Need
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, NodeByName, NodeByProviderId, NodeView

_INFO_FIELDS: Final = frozenset(NodeSystemInfo.__struct_encode_fields__)


class Found(Enum):
    """What is known of the Machine's Node."""

    NOT_ASKED = "not asked"
    UNKNOWN = "unknown"
    """There is no answer yet."""
    DOWN = "down"
    """There is no connection to the cluster."""
    FAILED = "failed"
    MISSING = "missing"
    FOUND = "found"


@dataclass(frozen=True, slots=True)
class NodeState:
    """What is known of the Machine's Node."""

    found: Found
    node: NodeView | None = None
    problem: str = ""


def cluster_of(observed: Observed) -> ClusterKey:
    """Key of the Machine's Cluster."""
    return cluster_at(observed.machine, observed.cluster)


def state(observed: Observed) -> NodeState:
    """What the latest answer says. An error leaves it open whether the last answer still holds."""
    fact = observed.nodes
    if fact is None or (fact.at is None and fact.error is None):
        return NodeState(Found.UNKNOWN)
    if fact.error is not None:
        down = isinstance(fact.error, NotConnected)
        return NodeState(Found.DOWN if down else Found.FAILED, problem=fact.error.message)
    nodes = fact.value or ()
    if len(nodes) > 1:
        names = ", ".join(node.name for node in nodes)
        return NodeState(
            Found.FAILED, problem=f"more than one Node has spec.providerID {observed.provider_id}: {names}"
        )
    return NodeState(Found.FOUND, nodes[0]) if nodes else NodeState(Found.MISSING)


def reconcile(draft: Draft, observed: Observed, cluster: Cluster, synced: Synced) -> NodeState:
    """Find the Node, take over what it says, and put onto it what the Machine says."""
    if not draft.spec.provider_id:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.WAITING_FOR_NODE_REF, INFO)
        return NodeState(Found.NOT_ASKED)
    if not cluster.status.initialization.infrastructure_provisioned:
        return NodeState(Found.NOT_ASKED)
    at = cluster_of(observed)
    query = NodeByProviderId(at, draft.spec.provider_id)
    draft.need(Need(Connection(at), PUSHED_S), Need(query, PUSHED_S))
    known = state(observed)
    if known.found is Found.MISSING:
        _missing(draft, at)
    elif known.found is Found.FAILED:
        message = "Failed to get the Node for this Machine by ProviderID"
        draft.put_legacy(legacy_unknown(Legacy.NODE_HEALTHY, LegacyReason.NODE_INSPECTION_FAILED, message))
        draft.wait("NodeNotReadable", known.problem)
    elif known.found is Found.DOWN:
        draft.wait("ConnectionDown", known.problem)
    elif known.node is not None:
        _take(draft, known.node)
        _sync(draft, observed, known.node, query, synced)
        _legacy_health(draft, observed, known.node)
    return known


def _missing(draft: Draft, at: ClusterKey) -> None:
    if draft.is_deleting:
        return
    if draft.status.node_ref.name:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_NOT_FOUND, ERROR)
        draft.wait("NodeNotFound", f"Node {draft.status.node_ref.name} has been deleted")
        return
    told = "Waiting for a node with matching ProviderID to exist"
    draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_PROVISIONING, WARNING, told)
    draft.wait("WaitingForNode", f"a Node with spec.providerID {draft.spec.provider_id} does not exist yet")
    draft.need(*(Need(NodeByName(at, name), PUSHED_S) for name in node_names(draft.machine)))


def _take(draft: Draft, node: NodeView) -> None:
    if not draft.status.node_ref.name:
        draft.status = replace(draft.status, node_ref=MachineNodeReference(name=node.name))
        draft.emit("SuccessfulSetNodeRef", node.name)
    draft.status = replace(draft.status, node_info=_info(node))


def _info(node: NodeView) -> NodeSystemInfo:
    fields: dict[str, Any] = msgspec.to_builtins(node.node_info)
    return msgspec.convert({name: value for name, value in fields.items() if name in _INFO_FIELDS}, NodeSystemInfo)


def _sync(draft: Draft, observed: Observed, node: NodeView, query: NodeByProviderId, synced: Synced) -> None:
    if node.deleting or draft.is_deleting:
        return
    external = observed.infrastructure
    interruptible = external.is_found and InfrastructureMachine.of(external).interruptible
    machine = replace(draft.machine, metadata=draft.metadata)
    labels = managed_labels(machine, synced, interruptible=interruptible)
    annotations = managed_annotations(machine, synced)
    change = node_patch(node, labels, annotations, draft.spec.taints, outdated=is_outdated(observed))
    if change is None:
        return
    change["metadata"] = {**change.get("metadata", {}), "resourceVersion": node.resource_version, "uid": node.uid}
    arguments = NodePatch(query.cluster, node.name, msgspec.json.encode(change))
    draft.last.append(Effect(PATCH_NODE, arguments, outdates=(query,)))
    if interruptible and LABEL_INTERRUPTIBLE not in node.labels:
        draft.emit("SuccessfulSetInterruptibleNodeLabel", node.name)


def _legacy_health(draft: Draft, observed: Observed, node: NodeView) -> None:
    external = observed.infrastructure
    if not external.is_found or external.is_deleting:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.DELETING, INFO)
        return
    status, message = node_conditions.legacy_health(node)
    if status == "False":
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_CONDITIONS_FAILED, WARNING, message)
    elif status == "Unknown":
        draft.put_legacy(legacy_unknown(Legacy.NODE_HEALTHY, LegacyReason.NODE_CONDITIONS_FAILED, message))
    else:
        draft.put_legacy(legacy_true(Legacy.NODE_HEALTHY))


def is_outdated(observed: Observed) -> bool:
    """Whether the MachineSet is of an older revision than its MachineDeployment."""
    if observed.machine_set is None or observed.machine_deployment is None:
        return False
    old, new = (_revision(one.metadata.annotations) for one in (observed.machine_set, observed.machine_deployment))
    return old is not None and new is not None and old < new


def _revision(annotations: Mapping[str, str]) -> int | None:
    return decimal(annotations.get(ANNOTATION_REVISION, "0"))
