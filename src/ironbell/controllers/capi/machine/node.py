"""The Machine's Node: found by provider ID, kept in step with the Machine's labels, annotations and taints. Pure.

Nodes are watched: queries are answered from memory, and a change of the answer requeues the Machine.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_noderef.go,
machine_controller_status.go (summarizeNodeConditions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import NodeSystemInfo
from ironbell.api.cluster.machine import MachineNodeReference
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import ANNOTATION_REVISION, LABEL_INTERRUPTIBLE
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.conditions.legacy import ERROR, INFO, WARNING, legacy_true, legacy_unknown
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason, Reason
from ironbell.controllers.capi.machine.node_metadata import Synced, managed_annotations, managed_labels, node_patch
from ironbell.controllers.capi.machine.observed import NodeFacts, node_names
from ironbell.controllers.capi.machine.performers import PATCH_NODE, NodePatch
from ironbell.kube.decision import Effect, Need
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, NodeByName, NodeByProviderId, NodeView

_INFO_FIELDS: Final = frozenset(NodeSystemInfo.__struct_encode_fields__)


class Lookup(Enum):
    """The result of looking up the Machine's Node."""

    NOT_QUERIED = "not queried"
    UNKNOWN = "unknown"
    """No answer has arrived yet."""
    DOWN = "down"
    """The connection to the cluster is down."""
    FAILED = "failed"
    MISSING = "missing"
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class NodeState:
    """The latest facts about the Machine's Node."""

    lookup: Lookup
    node: NodeView | None = None
    problem: str = ""


def state(facts: NodeFacts) -> NodeState:
    """The state by the latest answer. After an error it is open whether the previous answer still holds."""
    fact = facts.nodes
    if fact is None or (fact.at is None and fact.error is None):
        return NodeState(Lookup.UNKNOWN)
    if fact.error is not None:
        down = isinstance(fact.error, NotConnected)
        return NodeState(Lookup.DOWN if down else Lookup.FAILED, problem=fact.error.message)
    nodes = fact.value or ()
    if len(nodes) > 1:
        names = ", ".join(node.name for node in nodes)
        return NodeState(Lookup.FAILED, problem=f"more than one Node has spec.providerID {facts.provider_id}: {names}")
    return NodeState(Lookup.PRESENT, nodes[0]) if nodes else NodeState(Lookup.MISSING)


def reconcile(draft: Draft, facts: NodeFacts, cluster: Cluster) -> NodeState:
    """Find the Node, and report why it is not found."""
    if not draft.spec.provider_id:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.WAITING_FOR_NODE_REF, INFO)
        return NodeState(Lookup.NOT_QUERIED)
    if not cluster.status.initialization.infrastructure_provisioned:
        return NodeState(Lookup.NOT_QUERIED)
    query = NodeByProviderId(facts.cluster, draft.spec.provider_id)
    draft.need(Need(Connection(facts.cluster), PUSHED_S), Need(query, PUSHED_S))
    known = state(facts)
    if known.lookup is Lookup.MISSING:
        _missing(draft, facts.cluster)
    elif known.lookup is Lookup.FAILED:
        message = "Failed to get the Node for this Machine by ProviderID"
        draft.put_legacy(legacy_unknown(Legacy.NODE_HEALTHY, LegacyReason.NODE_INSPECTION_FAILED, message))
        draft.wait("NodeNotReadable", known.problem)
    elif known.lookup is Lookup.DOWN:
        draft.wait("ConnectionDown", known.problem)
    return known


def update(
    draft: Draft, node: NodeView, host: External, *, cluster: ClusterKey, synced: Synced, outdated: bool
) -> None:
    """Copy the Node's facts to the Machine, and update it from the Machine.

    Args:
        draft: the Machine.
        node: its Node.
        host: the infrastructure.
        cluster: the Node's cluster.
        synced: further labels and annotations to copy.
        outdated: whether the Machine is to be replaced.
    """
    _copy_node(draft, node)
    if not node.deleting and not draft.is_deleting:
        interruptible = host.exists and InfrastructureMachine.of(host).interruptible
        machine = replace(draft.machine, metadata=draft.metadata)
        labels = managed_labels(machine, synced, interruptible=interruptible)
        annotations = managed_annotations(machine, synced)
        if change := node_patch(node, labels, annotations, draft.spec.taints, outdated=outdated):
            unchanged = {"resourceVersion": node.resource_version, "uid": node.uid}
            change["metadata"] = {**change.get("metadata", {}), **unchanged}
            arguments = NodePatch(cluster, node.name, msgspec.json.encode(change))
            outdates = (NodeByProviderId(cluster, draft.spec.provider_id),)
            draft.last.append(Effect(PATCH_NODE, arguments, outdates=outdates))
            if interruptible and LABEL_INTERRUPTIBLE not in node.labels:
                draft.emit("SuccessfulSetInterruptibleNodeLabel", node.name)
    _legacy_health(draft, node, host)


def _missing(draft: Draft, at: ClusterKey) -> None:
    if draft.is_deleting:
        return
    if draft.status.node_ref.name:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_MISSING, ERROR)
        draft.wait("NodeNotFound", f"Node {draft.status.node_ref.name} has been deleted")
        return
    message = "Waiting for a node with matching ProviderID to exist"
    draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_PROVISIONING, WARNING, message)
    draft.wait("WaitingForNode", f"a Node with spec.providerID {draft.spec.provider_id} does not exist yet")
    draft.need(*(Need(NodeByName(at, name), PUSHED_S) for name in node_names(draft.machine)))


def _copy_node(draft: Draft, node: NodeView) -> None:
    if not draft.status.node_ref.name:
        draft.status = replace(draft.status, node_ref=MachineNodeReference(name=node.name))
        draft.emit("SuccessfulSetNodeRef", node.name)
    draft.status = replace(draft.status, node_info=_info(node))


def _info(node: NodeView) -> NodeSystemInfo:
    fields: dict[str, Any] = msgspec.to_builtins(node.node_info)
    return msgspec.convert({name: value for name, value in fields.items() if name in _INFO_FIELDS}, NodeSystemInfo)


def _legacy_health(draft: Draft, node: NodeView, host: External) -> None:
    if not host.exists or host.is_deleting:
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.DELETING, INFO)
        return
    status, message = legacy_health(node)
    if status == "False":
        draft.legacy_false(Legacy.NODE_HEALTHY, LegacyReason.NODE_CONDITIONS_FAILED, WARNING, message)
    elif status == "Unknown":
        draft.put_legacy(legacy_unknown(Legacy.NODE_HEALTHY, LegacyReason.NODE_CONDITIONS_FAILED, message))
    else:
        draft.put_legacy(legacy_true(Legacy.NODE_HEALTHY))


def is_outdated(machine_set: MachineSet | None, deployment: MachineDeployment | None) -> bool:
    """Return whether the MachineSet has an older revision than its MachineDeployment."""
    if machine_set is None or deployment is None:
        return False
    old, new = (_revision(owner.metadata.annotations) for owner in (machine_set, deployment))
    return old is not None and new is not None and old < new


def _revision(annotations: Mapping[str, str]) -> int | None:
    return decimal(annotations.get(ANNOTATION_REVISION, "0"))


READY: Final = "Ready"
_GOOD: Final = {READY: "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
"""Relevant conditions, each with its good status."""
_NOT_REPORTED: Final = "Condition not yet reported"


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition without its type."""

    status: str
    reason: str
    message: str = ""
    since: str | None = None


def readiness(node: NodeView) -> NodeCondition:
    """The Node's own condition Ready, with its transition time."""
    ready = node.condition(READY)
    if ready is None:
        return NodeCondition("Unknown", Reason.NODE_READY_UNKNOWN, f"* Node.Ready: {_NOT_REPORTED}")
    reasons = {"True": Reason.NODE_READY, "False": Reason.NODE_NOT_READY}
    message = f"* Node.Ready: {ready.message}" if ready.status != "True" and ready.message else ""
    reason = reasons.get(ready.status, Reason.NODE_READY_UNKNOWN)
    return NodeCondition(ready.status, reason, message, ready.last_transition_time)


def health(node: NodeView) -> NodeCondition:
    """All relevant conditions, aggregated."""
    bad = list(_bad(node))
    lines = [f"* Node.{kind}: {message}" for kind, _, message in bad]
    reported = [message for _, _, message in bad if message != _NOT_REPORTED]
    if len(reported) > 1 and len(set(reported)) == 1:
        lines = [f"* Node.AllConditions: {reported[0]}"]
    message = "\n".join(lines)
    if any(status not in ("Unknown", "") for _, status, _ in bad):
        return NodeCondition("False", Reason.NODE_NOT_HEALTHY, message)
    if bad:
        return NodeCondition("Unknown", Reason.NODE_HEALTHY_UNKNOWN, message)
    return NodeCondition("True", Reason.NODE_HEALTHY)


def legacy_health(node: NodeView) -> tuple[str, str]:
    """The same in the v1beta1 conditions: status and message. Unknown only if all four are."""
    bad = [(kind, status) for kind, status, _ in _bad(node) if status]
    message = ". ".join(f"Node condition {kind} is {status}" for kind, status in bad)
    if any(status != "Unknown" for _, status in bad):
        return "False", message
    return ("True" if len(bad) < len(_GOOD) else "Unknown"), message


def is_unreachable(node: NodeView) -> bool:
    """Return whether the node's kubelet does not report: then nothing ends its pods or detaches its volumes."""
    ready = node.condition(READY)
    return ready is not None and ready.status == "Unknown"


def _bad(node: NodeView) -> Iterator[tuple[str, str, str]]:
    """Type, status (empty if not reported) and message of the conditions that are not good."""
    for kind, good in _GOOD.items():
        condition = node.condition(kind)
        if condition is None:
            yield kind, "", _NOT_REPORTED
        elif condition.status != good:
            yield kind, condition.status, condition.message or f"Condition is {condition.status}"
