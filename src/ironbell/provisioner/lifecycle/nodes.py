"""The Node on a server: proof that a new system is up, that a restored record is right, and its provider ID. Pure.

**New systems.** With many templates (upstream's default, and most of users') the system sends no report. Then the proof
is a Node with the server's provider ID, or with its name and address, whose kubelet reports. Nodes are watched, so the
owner becomes ready as soon as its Node is ready. A Node of an earlier installation of the same server is not a proof.
Until its cluster has noticed that its kubelet is silent (less than a minute), only its times distinguish the two;
clocks of servers may be wrong, therefore times are compared only until the cluster must have noticed.

**Provider IDs.** A Machine finds its Node by provider ID only, and a kubelet has it only if the bootstrap data contain
`provider-id: PROVIDER_ID`. If they do not, or the distribution drops it, the Node is the one with the server's name and
address, and a kubelet that reports. It is queried once the cluster has run for a while without a Node, so that clusters
whose kubelets have their provider ID are hardly ever queried.

**Restored records.** An owner still has the server of a restored record if its Node of the backup exists and is Ready,
is older than the backup, and names this server: then nothing has been installed on it since. Otherwise a user has to
decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ironbell.api.cluster.names import ANNOTATION_MACHINE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.servers.restored import Restored, confirmation
from ironbell.kube.decision import Effect, Fact, MergePatch, Need, Query, patch
from ironbell.kube.reconciler import Cache
from ironbell.provisioner.lifecycle.host import Draft, NodeFact, NodeQuery, NodeWish, Step
from ironbell.provisioner.lifecycle.names import INSTALLED, provider_id
from ironbell.workload.nodes import SET_PROVIDER_ID, NodeNow, SetProviderId
from ironbell.workload.queries import PUSHED_S, NodeByName, NodeByProviderId, NodeView

GRACE_S: Final = 60.0
"""Time after machine and control plane are ready in which the Node should appear with its provider ID."""
QUERY_INTERVAL_S: Final = 60.0
SELDOM_S: Final = 900.0
"""Minimum and maximum interval, which grows, between queries of a cluster for the Node of a machine."""
CLOCKS_DIFFER: Final = timedelta(seconds=30)
"""Tolerated difference between the clocks of management and cluster."""
NOTICED: Final = timedelta(minutes=5)
"""Time after which a cluster has certainly noticed that a kubelet is silent."""


@dataclass(frozen=True, slots=True)
class InstalledNode:
    """The Node of a server that was just installed."""

    node: NodeView | None = None
    """The Node that proves that the system is up."""
    is_absent: bool = False
    """Whether the cluster has responded, and has no such Node."""
    problem: str = ""
    """The error of the query; empty if the cluster responded."""
    needs: tuple[Need[Any], ...] = ()


def new_node_queries(node: NodeWish | None, hardware: Hardware | None, workflow: Workflow | None) -> list[NodeQuery]:
    """Return the queries to the cluster while the installed system boots."""
    if node is None or hardware is None or workflow is None or workflow.status.state != WorkflowState.SUCCESS:
        return []
    names = [NodeByName(node.cluster, name) for name in names_of(node, hardware)]
    return [NodeByProviderId(node.cluster, provider_id(hardware)), *names]


def known(cache: Cache, query: NodeQuery) -> NodeFact:
    """Return the fact of one of these queries."""
    untyped: Query[Any] = query
    return cache.fact(untyped, PUSHED_S)


def installed_node(
    hardware: Hardware, facts: Sequence[tuple[NodeQuery, NodeFact]], end_time: datetime | None, now: datetime
) -> InstalledNode:
    """Return the Node by the facts that are newer than the installation."""
    needs = tuple(Need(query, PUSHED_S, newer_than=end_time) for query, _ in facts)
    current = [fact for _, fact in facts if fact is not None and fact.error is None]
    current = [fact for fact in current if fact.fresh(now, PUSHED_S, newer_than=end_time)]
    nodes = [node for fact in current for node in _nodes(fact) if _proves(node, hardware, end_time, now)]
    errors = [fact.error.message for _, fact in facts if fact is not None and fact.error is not None]
    return InstalledNode(
        node=next(iter(nodes), None),
        is_absent=bool(facts) and len(current) == len(facts) and not nodes,
        problem=next(iter(errors), ""),
        needs=needs,
    )


def _nodes(fact: Fact[Any]) -> Sequence[NodeView]:
    value = fact.value
    return value if isinstance(value, tuple) else [value] if value is not None else []


def _proves(node: NodeView, hardware: Hardware, end_time: datetime | None, now: datetime) -> bool:
    is_its = node.provider_id == provider_id(hardware) or (not node.provider_id and _is_on(node, hardware))
    return is_its and _reports(node) and _is_of_this_installation(node, end_time, now)


def _is_of_this_installation(node: NodeView, end_time: datetime | None, now: datetime) -> bool:
    if end_time is None or now - end_time >= NOTICED:
        return True
    ready = node.condition("Ready")
    heard = [ready.last_heartbeat_time, ready.last_transition_time] if ready is not None else []
    moments = [parse_rfc3339(moment) for moment in (node.creation_timestamp, *heard) if moment]
    return any(moment >= end_time - CLOCKS_DIFFER for moment in moments)


def namesake_queries(node: NodeWish | None, hardware: Hardware | None) -> list[NodeNow]:
    """Return queries of the Nodes that may be a ready owner's, by the names of server and Machine."""
    if node is None or hardware is None or node.name:
        return []
    return [NodeNow(node.cluster, name) for name in names_of(node, hardware)]


def identify(draft: Draft, node: NodeWish, hardware: Hardware) -> Step:
    """Wait for a Node with the provider ID; after `GRACE_S`, set it on a Node that lacks it."""
    if not node.is_awaited:
        return draft.proceeds()
    waited_s = _waited_s(draft, node)
    if waited_s < GRACE_S:
        return draft.proceeds(after_s=GRACE_S - waited_s)
    again_s = min(max(waited_s / 2, QUERY_INTERVAL_S), SELDOM_S)
    needs = tuple(Need(query, again_s) for query in namesake_queries(node, hardware))
    for query, fact in draft.state.namesakes:
        view = fact.value if fact.error is None else None
        if view is not None and _is_its(view, hardware):
            arguments = SetProviderId(query.cluster, view.name, view.uid, provider_id(hardware))
            message = f"Set spec.providerID of Node {view.name} to {arguments.provider_id}: its kubelet has none."
            event = draft.owner.event("NodeIdentified", message)
            return draft.proceeds(Effect(SET_PROVIDER_ID, arguments, outdates=(query,)), event, needs=needs)
    return draft.proceeds(needs=needs)


def _waited_s(draft: Draft, node: NodeWish) -> float:
    """Time since both the machine and its cluster's control plane are ready."""
    installed = draft.known(INSTALLED)
    both = (installed.last_transition_time if installed is not None else "", node.awaited_since)
    since = [parse_rfc3339(moment) for moment in both if moment]
    return (draft.now - max(since)).total_seconds() if since else GRACE_S


def names_of(node: NodeWish, hardware: Hardware) -> list[str]:
    """Return the possible names of the Node of a Machine on this server."""
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    hosts = [instance.hostname if instance is not None else ""]
    hosts += [interface.dhcp.hostname for interface in hardware.spec.interfaces if interface.dhcp is not None]
    names = [*hosts, node.machine, hardware.metadata.name]
    # A Node has the name of its host in lower case, with or without the domain.
    both = [part for name in names if name for part in (name.lower(), name.lower().partition(".")[0])]
    return list(dict.fromkeys(both))[:6]


def _is_on(node: NodeView, hardware: Hardware) -> bool:
    """Return whether this Node has an address of this server."""
    dhcps = [interface.dhcp for interface in hardware.spec.interfaces if interface.dhcp is not None]
    addresses = {dhcp.ip.address for dhcp in dhcps if dhcp.ip is not None and dhcp.ip.address}
    return any(address.type == "InternalIP" and address.address in addresses for address in node.addresses)


def _reports(node: NodeView) -> bool:
    """Return whether the Node's kubelet reports: its cluster sets Unknown otherwise."""
    ready = node.condition("Ready")
    return not node.deleting and ready is not None and ready.status in ("True", "False")


def _is_its(node: NodeView, hardware: Hardware) -> bool:
    """Return whether this Node runs on this server and has no provider ID."""
    return not node.provider_id and _reports(node) and _is_on(node, hardware)


def confirming_query(node: NodeWish | None) -> NodeNow | None:
    """Return the query that can confirm a restored record; None for an owner without a Node."""
    return NodeNow(node.cluster, node.name) if node is not None and node.name else None


def still_runs(node: NodeView | None, machine: str, hardware: Hardware, record: Restored) -> bool:
    """Return whether this Node ran on this server at the time of the backup."""
    if node is None or node.deleting or not record.backup:
        return False
    ready = node.condition("Ready")
    try:
        is_older = parse_rfc3339(node.creation_timestamp) < parse_rfc3339(record.backup)
    except ValueError:
        return False
    return (
        is_older
        and ready is not None
        and ready.status == "True"
        and node.provider_id == provider_id(hardware)
        and node.annotations.get(ANNOTATION_MACHINE, machine) == machine
    )


def confirmed(hardware: Hardware) -> MergePatch:
    """The write that confirms the restored record."""
    return patch(HARDWARE, hardware, {"metadata": {"annotations": confirmation(hardware)}}, locked=True)
