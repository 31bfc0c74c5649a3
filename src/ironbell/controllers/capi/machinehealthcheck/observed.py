"""What a decision about a MachineHealthCheck depends on, and what makes it be decided again.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go,
machinehealthcheck_targets.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK, MachineHealthCheck
from ironbell.api.cluster.names import ANNOTATION_PAUSED, ANNOTATION_SKIP_REMEDIATION
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.external import External, look_up_version
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.selectors import compiled
from ironbell.contract.templates import SUFFIX, cloned_kind
from ironbell.controllers.capi.indexes import MACHINES_OF_CLUSTER, cluster_key
from ironbell.kube.decision import Fact, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, AllNodes, Connection, ConnectionState, NodeByName, NodeView

SPACING_S: Final = 2.0
"""So far apart are two looks at all Machines of a check, however many of them change."""
_LEFT_ALONE: Final = (ANNOTATION_PAUSED, ANNOTATION_SKIP_REMEDIATION)


@dataclass(frozen=True, slots=True)
class Remediation:
    """How somebody else remediates Machines."""

    template: External
    kind: Kind[Unstructured] | None
    """Of the requests; None if it has no definition."""
    requests: Mapping[str, External] = field(default_factory=dict)
    """By name of the Machine."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachineHealthCheck with the Machines that it checks."""

    check: MachineHealthCheck
    cluster: Cluster | None
    machines: tuple[Machine, ...] = ()
    nodes: Fact[tuple[NodeView, ...]] | None = None
    connection: Fact[ConnectionState] | None = None
    missing: Mapping[NodeByName, Fact[NodeView | None] | None] = field(default_factory=dict)
    """Nodes that Machines have and that `nodes` does not show: they may be gone, or newer than it."""
    remediation: Remediation | None = None
    """None if the Machines' owners do it."""
    problem: str = ""
    """Why it cannot be told which Machines are checked."""


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather what the decision needs."""
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
        if selector.matches(machine.metadata.labels) and not _is_left_alone(machine)
    )
    at = ClusterKey.named(namespace, name, cluster)
    nodes = cache.fact(AllNodes(at), PUSHED_S)
    missing = {asked: cache.fact(asked, PUSHED_S) for asked in _missing(at, machines, nodes)}
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


def _is_left_alone(machine: Machine) -> bool:
    return any(annotation in machine.metadata.annotations for annotation in _LEFT_ALONE)


def _remediation(cache: Cache, check: MachineHealthCheck, machines: Sequence[Machine]) -> Remediation | None:
    reference, namespace = check.spec.remediation.template_ref, check.metadata.namespace
    if not reference.name:
        return None
    template = look_up_version(cache, reference.api_version, reference.kind, namespace, reference.name)
    of_requests = reference.kind.removesuffix(SUFFIX)
    requests = {
        machine.metadata.name: look_up_version(
            cache, reference.api_version, of_requests, namespace, machine.metadata.name
        )
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
    conditions = [(one.type, one.status) for one in cluster.status.conditions if one.type in gates]
    return (cluster.metadata.uid, cluster.spec.paused, conditions)


WATCHES: Final[Sequence[Watch[Any]]] = (
    DEFINITIONS,
    read_by(CLUSTER, relevant=changed(_of_cluster)),
    read_by(MACHINE, MACHINES_OF_CLUSTER, relevant=changed(_of_machine), delay_s=SPACING_S),
)
INDEXES: Final[Sequence[Index[Any]]] = (BY_GROUP_KIND, MACHINES_OF_CLUSTER)
