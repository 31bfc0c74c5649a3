"""Nodes whose kubelet was not told which machine it runs on get their provider ID from here. Pure.

A Machine finds its Node by provider ID alone, and a kubelet knows it only where the bootstrap data say `provider-id:
PROVIDER_ID`. Where they do not, or the distribution drops it, the Node is the one that has the server's name and
address, and a kubelet that reports. It is looked for when the cluster has been there for a while and the Machine has
found none, so that clusters whose kubelets are told are hardly ever asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Decision, Effect, Fact, Need, emit
from ironbell.provisioner.lifecycle.names import INSTALLED, provider_id
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.nodes import TELL_NODE, NodeNow, TellNode
from ironbell.workload.questions import NodeView

GRACE_S: Final = 60.0
"""For how long after machine and control plane are there the Node is expected to come with its provider ID."""
ASK_AGAIN_S: Final = 60.0
SELDOM_S: Final = 900.0
"""How often at least and at most a cluster is asked for one machine's Node: more and more seldom."""


def questions(
    obj: TinkerbellMachine, cluster: Cluster | None, machine: Machine | None, hardware: Hardware | None
) -> list[NodeNow]:
    """The Nodes that may be the machine's: by what the server is called, and what the Machine is."""
    if cluster is None or machine is None or hardware is None or not obj.status.ready or machine.status.node_ref.name:
        return []
    return [NodeNow(ClusterKey.of(cluster), name) for name in names_of(machine, hardware)]


def identify(
    progress: Progress,
    cluster: Cluster,
    machine: Machine,
    hardware: Hardware,
    facts: Sequence[tuple[NodeNow, Fact[NodeView | None]]],
) -> Decision:
    """Wait for the Node to come by itself; then look for one that nobody has told what it is."""
    obj = progress.obj
    if cluster.spec.control_plane_ref.name and not cluster.status.initialization.control_plane_initialized:
        return progress.goes_on()
    waited_s = _waited_s(obj, cluster, progress.now)
    if waited_s < GRACE_S:
        return progress.goes_on(after_s=GRACE_S - waited_s)
    found = next(((asked, node) for asked, fact in facts if (node := _value(fact)) and _is_its(node, hardware)), None)
    again_s = min(max(waited_s / 2, ASK_AGAIN_S), SELDOM_S)
    needs = tuple(Need(one, again_s) for one in questions(obj, cluster, machine, hardware))
    if found is None:
        return replace(progress.goes_on(), needs=needs)
    asked, node = found
    arguments = TellNode(asked.cluster, node.name, node.uid, provider_id(hardware))
    told = f"Node {node.name} is given spec.providerID {arguments.provider_id}: its kubelet was started without one"
    return replace(
        progress.goes_on(
            Effect(TELL_NODE, arguments, outdates=(asked,)),
            emit(TINKERBELL_MACHINE, obj, reason="NodeIdentified", message=told),
        ),
        needs=needs,
    )


def _waited_s(obj: TinkerbellMachine, cluster: Cluster, now: datetime) -> float:
    """For how long both the machine and its cluster's control plane have been there."""
    both = [
        find_condition(obj.status.conditions, INSTALLED),
        find_condition(cluster.status.conditions, "ControlPlaneInitialized"),
    ]
    since = [parse_rfc3339(one.last_transition_time) for one in both if one is not None and one.last_transition_time]
    return (now - max(since)).total_seconds() if since else GRACE_S


def names_of(machine: Machine, hardware: Hardware) -> list[str]:
    """What the Node of a Machine on this server may be called."""
    instance = hardware.spec.metadata.instance if hardware.spec.metadata is not None else None
    told = [instance.hostname if instance is not None else ""]
    told += [interface.dhcp.hostname for interface in hardware.spec.interfaces if interface.dhcp is not None]
    names = [*told, machine.metadata.name, hardware.metadata.name]
    # a kubelet's Node is called as its host, in small letters, with or without the domain
    both = [part for name in names if name for part in (name.lower(), name.lower().partition(".")[0])]
    return list(dict.fromkeys(both))[:6]


def _value(fact: Fact[NodeView | None]) -> NodeView | None:
    return fact.value if fact.error is None else None


def is_on(node: NodeView, hardware: Hardware) -> bool:
    """Whether this Node has an address of this server."""
    dhcps = [interface.dhcp for interface in hardware.spec.interfaces if interface.dhcp is not None]
    addresses = {dhcp.ip.address for dhcp in dhcps if dhcp.ip is not None and dhcp.ip.address}
    return any(address.type == "InternalIP" and address.address in addresses for address in node.addresses)


def reports(node: NodeView) -> bool:
    """Whether the Node's kubelet is heard: its cluster sets Unknown when it is not."""
    ready = node.condition("Ready")
    return not node.deleting and ready is not None and ready.status in ("True", "False")


def _is_its(node: NodeView, hardware: Hardware) -> bool:
    """Whether this Node runs on this server, now, and has no provider ID."""
    return not node.provider_id and reports(node) and is_on(node, hardware)
