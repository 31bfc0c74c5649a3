"""The Nodes of a cluster that a MachineHealthCheck knows, and those that may exist. Pure.

All Nodes are read now and then, and a Machine may have got its Node since: each that is missed is asked for by name.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_targets.go
(getTargetsFromMHC).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ironbell.api.cluster.machine import Machine
from ironbell.controllers.capi.machinehealthcheck.checks import Target
from ironbell.controllers.capi.machinehealthcheck.observed import Observed
from ironbell.kube.decision import Need
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, AllNodes, Connection, NodeView


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """The Nodes of a cluster, as far as they are known."""

    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    """By name."""
    unknown: frozenset[str] = frozenset()
    """Names of Nodes that may be there or not."""
    is_open: bool = True
    """Whether there is a connection: else nothing is known of any Node."""
    restored: datetime | None = None
    """When a lost connection came back."""
    needs: Sequence[Need[Any]] = ()
    problem: str = ""
    """Why something is not known."""
    is_asking: bool = False
    """Whether what is not known will be in a moment."""
    is_asked: bool = True
    """Whether Nodes have been asked for: else of those that Machines have nothing is known."""


UNASKED: Final = KnownNodes(is_asked=False)
"""Of a cluster whose control plane is not initialised yet; its first Machine may have its Node before that is said."""


def known_nodes(observed: Observed) -> KnownNodes:
    """The Nodes that a cluster has answered with."""
    check, nodes = observed.check, observed.nodes
    cluster = ClusterKey.named(check.metadata.namespace, check.spec.cluster_name, observed.cluster)
    needs: list[Need[Any]] = [Need(AllNodes(cluster), PUSHED_S), Need(Connection(cluster), PUSHED_S)]
    connection = observed.connection.value if observed.connection is not None else None
    if nodes is not None and nodes.error is not None:
        return KnownNodes(is_open=False, needs=needs, problem=nodes.error.message)
    if connection is not None and not connection.connected:
        return KnownNodes(is_open=False, needs=needs, problem=connection.error)
    if nodes is None or nodes.value is None or connection is None:
        return KnownNodes(is_open=False, needs=needs, problem="the Nodes of the cluster are asked for", is_asking=True)
    needs += [Need(one, PUSHED_S) for one in observed.missing]
    asked = [one for one, fact in observed.missing.items() if fact is None or (fact.at is None and fact.error is None)]
    failed = {one: fact.error for one, fact in observed.missing.items() if fact is not None and fact.error is not None}
    found = [fact.value for fact in observed.missing.values() if fact is not None and fact.value is not None]
    problem = next((error.message for error in failed.values()), "")
    return KnownNodes(
        {node.name: node for node in (*nodes.value, *found)},
        frozenset(one.name for one in (*asked, *failed)),
        restored=connection.restored,
        needs=needs,
        problem="Nodes that seem to be gone are asked for" if asked else problem,
        is_asking=bool(asked),
    )


def targets(machines: Sequence[Machine], known: KnownNodes) -> list[Target]:
    """The Machines with what is known of their Nodes."""
    joined = {node.provider_id for node in known.nodes.values() if node.provider_id}

    def is_seen(node: str) -> bool:
        return known.is_open and node not in known.unknown and (known.is_asked or not node)

    return [
        Target(
            machine,
            known.nodes.get(machine.status.node_ref.name),
            is_seen=is_seen(machine.status.node_ref.name),
            has_joined=machine.spec.provider_id in joined,
        )
        for machine in machines
    ]
