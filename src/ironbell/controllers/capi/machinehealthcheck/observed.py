"""The input of a decision about a MachineHealthCheck, and the events that cause another decision.

All Nodes are read periodically, and a Machine may have got its Node since: each missing Node is queried by name.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go,
machinehealthcheck_targets.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK, MachineHealthCheck
from ironbell.api.cluster.names import ANNOTATION_PAUSED, ANNOTATION_SKIP_REMEDIATION
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.external import External, read_version
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.selectors import compiled
from ironbell.contract.templates import SUFFIX, cloned_kind
from ironbell.controllers.capi.indexes import MACHINES_OF_CLUSTER, cluster_key
from ironbell.controllers.capi.machinehealthcheck.checks import Target
from ironbell.kube.decision import Fact, Key, Need
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, AllNodes, Connection, ConnectionState, NodeByName, NodeView

SPACING_S: Final = 2.0
"""Minimum time between two decisions about all Machines of a check, however many of them change."""
_EXCLUDING: Final = (ANNOTATION_PAUSED, ANNOTATION_SKIP_REMEDIATION)


@dataclass(frozen=True, slots=True)
class Remediation:
    """Remediation of Machines by an external controller."""

    template: External
    kind: Kind[Unstructured] | None
    """Kind of the requests; None if it has no definition."""
    requests: Mapping[str, External] = field(default_factory=dict)
    """Requests by name of the Machine."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachineHealthCheck with the Machines that it checks."""

    check: MachineHealthCheck
    cluster: Cluster | None
    machines: tuple[Machine, ...] = ()
    nodes: Fact[tuple[NodeView, ...]] | None = None
    connection: Fact[ConnectionState] | None = None
    missing: Mapping[NodeByName, Fact[NodeView | None] | None] = field(default_factory=dict)
    """Nodes that Machines name and that `nodes` does not contain: they may have been deleted, or be newer."""
    remediation: Remediation | None = None
    """None if the Machines' owners remediate them."""
    problem: str = ""
    """The reason why the checked Machines are unknown."""


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the input of the decision."""
    check = cache.get(MACHINE_HEALTH_CHECK, *key)
    if check is None or is_deleting(check):
        return None
    namespace, name = check.metadata.namespace, check.spec.cluster_name
    cluster = cache.get(CLUSTER, namespace, name)
    try:
        selector = compiled(check.spec.selector)
    except SelectorError as error:
        return Observed(check, cluster, problem=f"spec.selector: {error}")
    machines = tuple(
        machine
        for machine in cache.indexed(MACHINES_OF_CLUSTER, cluster_key(namespace, name))
        if selector.matches(machine.metadata.labels) and not _is_excluded(machine)
    )
    at = ClusterKey.named(namespace, name, cluster)
    nodes = cache.fact(AllNodes(at), PUSHED_S)
    missing = {query: cache.fact(query, PUSHED_S) for query in _missing(at, machines, nodes)}
    connection = cache.fact(Connection(at), PUSHED_S)
    return Observed(check, cluster, machines, nodes, connection, missing, _remediation(cache, check, machines))


def _missing(
    cluster: ClusterKey, machines: Sequence[Machine], nodes: Fact[tuple[NodeView, ...]] | None
) -> Sequence[NodeByName]:
    if nodes is None or nodes.value is None:
        return ()
    shown = {node.name for node in nodes.value}
    names = {machine.status.node_ref.name for machine in machines} - shown - {""}
    return [NodeByName(cluster, name) for name in sorted(names)]


def _is_excluded(machine: Machine) -> bool:
    return any(annotation in machine.metadata.annotations for annotation in _EXCLUDING)


def _remediation(cache: Cache, check: MachineHealthCheck, machines: Sequence[Machine]) -> Remediation | None:
    reference, namespace = check.spec.remediation.template_ref, check.metadata.namespace
    if not reference.name:
        return None
    template = read_version(cache, reference.api_version, reference.kind, namespace, reference.name)
    of_requests = reference.kind.removesuffix(SUFFIX)
    requests = {
        machine.metadata.name: read_version(cache, reference.api_version, of_requests, namespace, machine.metadata.name)
        for machine in machines
    }
    return Remediation(template, cloned_kind(cache, template), requests)


def _of_machine(machine: Machine) -> tuple[Any, ...]:
    meta = machine.metadata
    return (
        meta.uid,
        meta.deletion_timestamp,
        meta.labels,
        meta.annotations,
        machine.status.node_ref.name,
        machine.status.conditions,
    )


def _of_cluster(cluster: Cluster) -> tuple[Any, ...]:
    """The fields of a Cluster that checks depend on; its status changes with each of its Machines."""
    gates = ("ControlPlaneInitialized", "InfrastructureReady")
    conditions = [
        (condition.type, condition.status) for condition in cluster.status.conditions if condition.type in gates
    ]
    return (cluster.metadata.uid, cluster.spec.paused, conditions)


WATCHES: Final[Sequence[Watch[Any]]] = (
    DEFINITIONS,
    read_by(CLUSTER, relevant=changed(_of_cluster)),
    read_by(MACHINE, MACHINES_OF_CLUSTER, relevant=changed(_of_machine), delay_s=SPACING_S),
)
INDEXES: Final[Sequence[Index[Any]]] = (BY_GROUP_KIND, MACHINES_OF_CLUSTER)


@dataclass(frozen=True, slots=True)
class KnownNodes:
    """The known Nodes of a cluster."""

    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    """By name."""
    unknown: frozenset[str] = frozenset()
    """Names of Nodes that may or may not exist."""
    is_open: bool = True
    """Whether the cluster is connected: otherwise no Node is known."""
    restored: datetime | None = None
    """Time when a lost connection was restored."""
    needs: Sequence[Need[Any]] = ()
    problem: str = ""
    """The reason why some Nodes are not known."""
    is_pending: bool = False
    """Whether the missing facts are being queried."""
    is_queried: bool = True
    """Whether Nodes were queried: otherwise nothing is known of the Nodes that Machines name."""


NOT_QUERIED: Final = KnownNodes(is_queried=False)
"""For a cluster whose control plane is not initialized yet; its first Machine may have its Node before that is
reported.
"""


def known_nodes(observed: Observed) -> KnownNodes:
    """The Nodes by the cluster's latest answers."""
    check, nodes = observed.check, observed.nodes
    cluster = ClusterKey.named(check.metadata.namespace, check.spec.cluster_name, observed.cluster)
    needs: list[Need[Any]] = [Need(AllNodes(cluster), PUSHED_S), Need(Connection(cluster), PUSHED_S)]
    connection = observed.connection.value if observed.connection is not None else None
    if nodes is not None and nodes.error is not None:
        return KnownNodes(is_open=False, needs=needs, problem=nodes.error.message)
    if connection is not None and not connection.connected:
        return KnownNodes(is_open=False, needs=needs, problem=connection.error)
    if nodes is None or nodes.value is None or connection is None:
        return KnownNodes(is_open=False, needs=needs, problem="querying the Nodes of the cluster", is_pending=True)
    needs += [Need(query, PUSHED_S) for query in observed.missing]
    pending = [
        query for query, fact in observed.missing.items() if fact is None or (fact.at is None and fact.error is None)
    ]
    failed = {
        query: fact.error for query, fact in observed.missing.items() if fact is not None and fact.error is not None
    }
    nodes_by_name = [fact.value for fact in observed.missing.values() if fact is not None and fact.value is not None]
    problem = next((error.message for error in failed.values()), "")
    return KnownNodes(
        {node.name: node for node in (*nodes.value, *nodes_by_name)},
        frozenset(query.name for query in (*pending, *failed)),
        restored=connection.restored,
        needs=needs,
        problem="querying Nodes that seem to be deleted" if pending else problem,
        is_pending=bool(pending),
    )


def targets(machines: Sequence[Machine], known: KnownNodes) -> list[Target]:
    """The Machines with the known facts about their Nodes."""
    joined = {node.provider_id for node in known.nodes.values() if node.provider_id}

    def is_seen(node: str) -> bool:
        return known.is_open and node not in known.unknown and (known.is_queried or not node)

    return [
        Target(
            machine,
            known.nodes.get(machine.status.node_ref.name),
            is_seen=is_seen(machine.status.node_ref.name),
            has_joined=machine.spec.provider_id in joined,
        )
        for machine in machines
    ]
