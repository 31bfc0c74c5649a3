"""The input of a decision about a Machine, and the events that cause another decision.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinedeployment import MACHINE_DEPLOYMENT, MachineDeployment
from ironbell.api.cluster.machinedrainrule import MACHINE_DRAIN_RULE, MachineDrainRule
from ironbell.api.cluster.machineset import MACHINE_SET, MachineSet
from ironbell.api.cluster.names import ANNOTATION_REVISION, LABEL_CONTROL_PLANE, LABEL_DEPLOYMENT_NAME
from ironbell.api.meta import Resource
from ironbell.contract.clusters.external import External, read_reference
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.owners import group_of
from ironbell.controllers.capi.machine.drain.pods import Outcome, PodsOfNode
from ironbell.controllers.capi.machine.drain.volumes import VolumesOfNode
from ironbell.controllers.capi.machine.queries import REFRESH_S, Evicted, NodesNow, PodsOn, VolumesOn
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fact, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import actionable, changed
from ironbell.kube.reconciler import Cache, Changes, Index, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, ConnectionState, NodeByName, NodeByProviderId, NodeView

R = TypeVar("R", bound=Resource)

HOSTNAMES: Final = ("Hostname", "InternalDNS")
"""Types of addresses that may be the name of the Machine's Node."""


def _of_control_plane(machine: Machine) -> list[str]:
    """The cluster of a control plane Machine that is not being deleted."""
    if LABEL_CONTROL_PLANE not in machine.metadata.labels or is_deleting(machine):
        return []
    return [cluster_key(machine)]


def cluster_key(machine: Machine) -> str:
    """Index value of a Machine's Cluster."""
    return f"{machine.metadata.namespace}/{machine.spec.cluster_name}"


CONTROL_PLANE: Final = Index(MACHINE, "machine-control-plane", _of_control_plane)
RULES: Final = Index(MACHINE_DRAIN_RULE, "machine-drain-rules", lambda rule: [rule.metadata.namespace])


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts from a cluster about a Machine's Node."""

    cluster: ClusterKey
    provider_id: str = ""
    """The Machine's provider ID, or its infrastructure's before the Machine has one."""
    connection: Fact[ConnectionState] | None = None
    nodes: Fact[tuple[NodeView, ...]] | None = None
    """Nodes with that provider ID."""
    namesakes: tuple[NodeView, ...] = ()
    """Nodes with a name that the Machine's Node could have."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """The input for a Machine that is being deleted."""

    facts: NodeFacts
    cluster: Cluster | None
    control_plane: External | None = None
    """The object that the Cluster's `spec.controlPlaneRef` names."""
    control_plane_machines: int = 0
    """Control plane Machines of the Cluster that are not being deleted."""
    rules: tuple[MachineDrainRule, ...] = ()
    node: Fact[NodeView | None] | None = None
    """The Node of the Machine's `status.nodeRef`."""
    pods: Fact[PodsOfNode] | None = None
    evicted: Fact[tuple[Outcome, ...]] | None = None
    volumes: Fact[VolumesOfNode] | None = None
    nodes_now: Fact[tuple[str, ...]] | None = None
    """Names of the Nodes with the Machine's provider ID, read from the cluster itself."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A Machine with all objects and facts that it refers to."""

    machine: Machine
    cluster: Cluster | None
    infrastructure: External
    facts: NodeFacts
    bootstrap: External | None = None
    """None if the Machine names no bootstrap config."""
    machine_set: MachineSet | None = None
    machine_deployment: MachineDeployment | None = None
    deletion: Deletion | None = None
    """None unless the Machine is being deleted."""


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the input of the decision."""
    machine = cache.get(MACHINE, *key)
    if machine is None:
        return None
    namespace, spec = machine.metadata.namespace, machine.spec
    infrastructure = read_reference(cache, spec.infrastructure_ref, namespace)
    machine_set = _owning_set(cache, machine)
    provider_id = spec.provider_id
    if not provider_id and infrastructure.exists:
        provider_id = InfrastructureMachine.of(infrastructure).provider_id
    cluster = cache.get(CLUSTER, namespace, spec.cluster_name)
    facts = _facts(cache, machine, cluster, provider_id)
    return Observed(
        machine,
        cluster,
        infrastructure,
        facts,
        read_reference(cache, spec.bootstrap.config_ref, namespace) if spec.bootstrap.config_ref.name else None,
        machine_set,
        _deployment(cache, machine_set),
        _deletion(cache, machine, cluster, facts) if is_deleting(machine) else None,
    )


def _facts(cache: Cache, machine: Machine, cluster: Cluster | None, provider_id: str) -> NodeFacts:
    at = ClusterKey.named(machine.metadata.namespace, machine.spec.cluster_name, cluster)
    return NodeFacts(
        at,
        provider_id,
        cache.fact(Connection(at), PUSHED_S),
        cache.fact(NodeByProviderId(at, provider_id), PUSHED_S) if provider_id else None,
        tuple(_namesakes(cache, machine, at)),
    )


def node_names(machine: Machine) -> list[str]:
    """Possible names of the Machine's Node, the most likely first."""
    addresses = [address.address for address in machine.status.addresses if address.type in HOSTNAMES]
    return list(dict.fromkeys([machine.metadata.name, *addresses]))[:3]


def needs_namesakes(machine: Machine) -> bool:
    """Return whether the Machine has a provider ID, and never had a Node."""
    return bool(machine.spec.provider_id) and not machine.status.node_ref.name and not is_deleting(machine)


def _namesakes(cache: Cache, machine: Machine, at: ClusterKey) -> list[NodeView]:
    if not needs_namesakes(machine):
        return []
    facts = [cache.fact(NodeByName(at, name), PUSHED_S) for name in node_names(machine)]
    return [fact.value for fact in facts if fact is not None and fact.value is not None]


def _owning_set(cache: Cache, machine: Machine) -> MachineSet | None:
    for owner in machine.metadata.owner_references:
        if (group_of(owner.api_version), owner.kind) == (MACHINE_SET.group, MACHINE_SET.kind):
            return cache.get(MACHINE_SET, machine.metadata.namespace, owner.name)
    return None


def _deployment(cache: Cache, machine_set: MachineSet | None) -> MachineDeployment | None:
    name = machine_set.metadata.labels.get(LABEL_DEPLOYMENT_NAME) if machine_set is not None else None
    return cache.get(MACHINE_DEPLOYMENT, machine_set.metadata.namespace, name) if machine_set and name else None


def _deletion(cache: Cache, machine: Machine, cluster: Cluster | None, facts: NodeFacts) -> Deletion:
    namespace, node = machine.metadata.namespace, machine.status.node_ref.name
    at, provider_id = facts.cluster, facts.provider_id
    reference = cluster.spec.control_plane_ref if cluster is not None else None
    return Deletion(
        facts,
        cluster,
        read_reference(cache, reference, namespace) if reference is not None and reference.name else None,
        len(cache.indexed(CONTROL_PLANE, cluster_key(machine))),
        tuple(cache.indexed(RULES, namespace)),
        cache.fact(NodeByName(at, node), PUSHED_S) if node else None,
        cache.fact(PodsOn(at, node), REFRESH_S) if node else None,
        cache.fact(Evicted(at, node), PUSHED_S) if node else None,
        cache.fact(VolumesOn(at, node), REFRESH_S) if node else None,
        cache.fact(NodesNow(at, provider_id), PUSHED_S) if provider_id else None,
    )


def _of_cluster(cluster: Cluster) -> tuple[Any, ...]:
    """The fields of a Cluster that its Machines depend on; its status changes with each of them."""
    initialized = find_condition(cluster.status.conditions, "ControlPlaneInitialized")
    return (
        cluster.metadata.uid,
        cluster.metadata.deletion_timestamp is None,
        cluster.metadata.labels,
        cluster.metadata.annotations,
        cluster.spec,
        cluster.status.initialization,
        initialized.status if initialized is not None else "",
    )


def _of_template(owner: MachineSet | MachineDeployment) -> tuple[Any, ...]:
    return (owner.metadata.labels, owner.metadata.annotations.get(ANNOTATION_REVISION), owner.spec.template)


ROLL_UP_S: Final = 1.0
"""Time for gathering conditions of providers' objects, and conditions that others set on a Machine."""
_REPORTS: Final = frozenset({"phase", "last_updated", "observed_generation", "addresses", "node_info"})
OWN: Final = Changes(urgent=actionable(reports=_REPORTS), delay_s=ROLL_UP_S, reporting=True)
PROVIDERS: Final = Changes(urgent=actionable(), delay_s=ROLL_UP_S, reporting=True)
WATCHES: Final[Sequence[Watch[Any]]] = (
    DEFINITIONS,
    read_by(CLUSTER, relevant=changed(_of_cluster)),
    read_by(MACHINE_SET, relevant=changed(_of_template)),
    read_by(
        MACHINE_DEPLOYMENT,
        relevant=changed(lambda deployment: (_of_template(deployment), deployment.spec.rollout.after)),
    ),
    read_by(MACHINE_DRAIN_RULE, RULES),
    read_by(MACHINE, CONTROL_PLANE, relevant=changed(_of_control_plane, absent=[])),
)
INDEXES: Final[Sequence[Index[Any]]] = (BY_GROUP_KIND, CONTROL_PLANE, RULES)
