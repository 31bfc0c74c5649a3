"""A scene for controllers of Machines: objects of made-up providers, and a workload cluster that is a few values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.core.node import NodeCondition, Taint
from ironbell.api.meta import Condition
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.controllers.capi.machine.drain.pods import Outcome, PodsOfNode, PodView
from ironbell.controllers.capi.machine.drain.volumes import VolumesOfNode
from ironbell.controllers.capi.machine.performers import (
    CORDON,
    DELETE_NODE,
    EVICT,
    PATCH_NODE,
    CordonArguments,
    DeleteNodeArguments,
    EvictArguments,
    NodePatch,
)
from ironbell.controllers.capi.machine.queries import Evicted, NodesNow, PodsOn, VolumesOn
from ironbell.controllers.capi.machine.reconciler import MachineReconciler
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, Fields
from ironbell.kube.testing import World
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import Connection, ConnectionState, NodeByName, NodeByProviderId, NodeView

NAMESPACE, CLUSTER_NAME = "ns", "c1"
AT = (NAMESPACE, CLUSTER_NAME)
INFRASTRUCTURE, BOOTSTRAP = "infrastructure.example.io", "bootstrap.example.io"
CONTROL = "controlplane.example.io"
HOST = dynamic_kind(INFRASTRUCTURE, "v1", "Host", "hosts")
OLD_HOST = dynamic_kind(INFRASTRUCTURE, "v1alpha1", "OldHost", "oldhosts")
CONFIG = dynamic_kind(BOOTSTRAP, "v1", "Config", "configs")
CONTROL_PLANE = dynamic_kind(CONTROL, "v1", "Plane", "planes")
PROVIDER_ID = "example://host-1"
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
NODE_FINE = (
    NodeCondition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z"),
    *(NodeCondition(type=kind, status="False") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")),
)


@dataclass
class Workload:
    """The workload cluster, and what was done there."""

    nodes: dict[str, NodeView] = field(default_factory=dict)
    pods: dict[str, list[PodView]] = field(default_factory=dict)
    volumes: dict[str, VolumesOfNode] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    """Pods that a budget protects, by name."""
    lingering: set[str] = field(default_factory=set)
    """Pods that stay for a while after their eviction, by name."""
    state: ConnectionState = field(default_factory=lambda: ConnectionState(connected=True))
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    broken: str = ""
    """Why nodes cannot be deleted."""

    def require(self) -> None:
        if not self.state.connected:
            raise NotConnected(ClusterKey(*AT, "c1"), last_error="timed out")


def _nodes_by_id(world: World, query: NodeByProviderId) -> tuple[NodeView, ...]:
    world.outside.require()
    return tuple(node for node in world.outside.nodes.values() if node.provider_id == query.provider_id)


def _nodes_now(world: World, query: NodesNow) -> tuple[str, ...]:
    world.outside.require()
    return tuple(name for name, node in world.outside.nodes.items() if node.provider_id == query.provider_id)


def _node_by_name(world: World, query: NodeByName) -> NodeView | None:
    world.outside.require()
    found: NodeView | None = world.outside.nodes.get(query.name)
    return found


def _pods(world: World, query: PodsOn) -> PodsOfNode:
    world.outside.require()
    pods = world.outside.pods.get(query.node, ())
    return PodsOfNode(tuple(pods), {pod.namespace: {} for pod in pods})


def _volumes(world: World, query: VolumesOn) -> VolumesOfNode:
    world.outside.require()
    found: VolumesOfNode = world.outside.volumes.get(query.node, VolumesOfNode())
    return found


def _evicted(world: World, query: Evicted) -> tuple[Outcome, ...]:
    return tuple(world.outside.outcomes.get(query.node, {}).values())


def _patch_node(world: World, arguments: NodePatch) -> Sequence[Action]:
    there: Workload = world.outside
    there.require()
    change: dict[str, Any] = msgspec.json.decode(arguments.body)
    node = there.nodes[arguments.node]
    assert change["metadata"].pop("resourceVersion") == node.resource_version
    assert change["metadata"].pop("uid") == node.uid
    plain = {
        "metadata": {"labels": dict(node.labels), "annotations": dict(node.annotations)},
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in node.taints]},
    }
    after = patches.apply(plain, change)
    there.nodes[arguments.node] = replace(
        node,
        labels=after["metadata"].get("labels", {}),
        annotations=after["metadata"].get("annotations", {}),
        taints=tuple(msgspec.convert(taint, Taint) for taint in after["spec"].get("taints") or ()),
        resource_version=str(int(node.resource_version) + 1),
    )
    there.log.append(f"patch {arguments.node}")
    return ()


def _cordon(world: World, arguments: CordonArguments) -> Sequence[Action]:
    there: Workload = world.outside
    there.require()
    there.nodes[arguments.node] = replace(there.nodes[arguments.node], unschedulable=True)
    there.log.append(f"cordon {arguments.node}")
    return ()


def _evict(world: World, arguments: EvictArguments) -> Sequence[Action]:
    there: Workload = world.outside
    there.require()
    outcomes = there.outcomes.setdefault(arguments.node, {})
    for pod in arguments.pods:
        there.log.append(f"evict {pod.name}")
        held = there.pods[arguments.node]
        error = (
            "Cannot evict pod as it would violate the pod's disruption budget." if pod.name in there.protected else ""
        )
        outcomes[pod.uid] = Outcome(pod.uid, world.now(), error)
        if pod.name in there.lingering:
            there.pods[arguments.node] = [
                replace(one, deletion=world.now()) if one.uid == pod.uid else one for one in held
            ]
        elif not error:
            there.pods[arguments.node] = [one for one in held if one.uid != pod.uid]
    return ()


def _delete_node(world: World, arguments: DeleteNodeArguments) -> Sequence[Action]:
    there: Workload = world.outside
    if there.broken or not there.state.connected:
        if arguments.give_up_at is None or world.now() < arguments.give_up_at:
            raise NotConnected(ClusterKey(*AT, "c1"), last_error=there.broken or "timed out")
        there.log.append(f"give up {arguments.node}")
        return ()
    there.nodes.pop(arguments.node, None)
    there.log.append(f"delete {arguments.node}")
    return ()


PERFORMERS: Mapping[str, Any] = {
    PATCH_NODE: _patch_node,
    CORDON: _cordon,
    EVICT: _evict,
    DELETE_NODE: _delete_node,
}
ASKERS: Mapping[type[Any], Any] = {
    Connection: lambda world, _query: world.outside.state,
    NodeByProviderId: _nodes_by_id,
    NodeByName: _node_by_name,
    PodsOn: _pods,
    VolumesOn: _volumes,
    Evicted: _evicted,
    NodesNow: _nodes_now,
}


def reference(kind: Any, name: str) -> Fields:
    """A reference to a provider's object."""
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def node(name: str = "m1", **changes: Any) -> NodeView:
    """A node that is well."""
    fields: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "provider_id": PROVIDER_ID,
        "conditions": NODE_FINE,
        **changes,
    }
    return NodeView(name, **fields)


@dataclass
class Scene:
    """A cluster of Machines, and the controller of one of them."""

    world: World
    reconciler: MachineReconciler = field(default_factory=MachineReconciler)

    @property
    def there(self) -> Workload:
        workload: Workload = self.world.outside
        return workload

    @property
    def machine(self) -> Machine:
        return self.world.require(MACHINE, NAMESPACE, "m1")

    @property
    def exists(self) -> bool:
        return self.world.get(MACHINE, NAMESPACE, "m1") is not None

    @property
    def cluster(self) -> Cluster:
        return self.world.require(CLUSTER, NAMESPACE, CLUSTER_NAME)

    def settle(self, horizon_s: float = 0.0) -> Machine | None:
        """Let the controller run; what is outside has just been seen."""
        self.world.facts.clear()
        self.world.settle(self.reconciler, horizon_s=horizon_s)
        return self.world.get(MACHINE, NAMESPACE, "m1")

    def condition(self, kind: str) -> Condition:
        """One of the Machine's conditions."""
        found = find_condition(self.machine.status.conditions, kind)
        assert found is not None, f"no condition {kind}"
        return found

    def told(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of one of the Machine's conditions."""
        found = self.condition(kind)
        return (found.status, found.reason, found.message)

    def legacy(self, kind: str) -> tuple[str, str, str, str]:
        """Status, severity, reason and message of one of the Machine's older conditions."""
        deprecated = self.machine.status.deprecated
        assert deprecated is not None
        assert deprecated.v1beta1 is not None
        found = next(one for one in deprecated.v1beta1.conditions if one.type == kind)
        return (found.status, found.severity, found.reason, found.message)

    def add_host(self, name: str = "h1", *, kind: Any = HOST, **fields: Any) -> Unstructured:
        return self.world.add(kind, {"metadata": {"name": name, "namespace": NAMESPACE}, **fields})

    def add_config(self, name: str = "b1", **fields: Any) -> Unstructured:
        return self.world.add(CONFIG, {"metadata": {"name": name, "namespace": NAMESPACE}, **fields})

    def host_is_made(self) -> None:
        """The provider has made the host."""
        host = self.world.require(HOST, NAMESPACE, "h1")
        self.world.change(HOST, host, {"spec": {"providerID": PROVIDER_ID}})
        status = {
            "initialization": {"provisioned": True},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "server-1"}],
            "failureDomain": "rack-1",
        }
        self.world.set_status(HOST, host, status)

    def data_is_there(self) -> None:
        """The bootstrap provider has made the Secret."""
        config = self.world.require(CONFIG, NAMESPACE, "b1")
        self.world.set_status(CONFIG, config, {"initialization": {"dataSecretCreated": True}, "dataSecretName": "b1"})

    def delete(self, *, wait_s: float = 0.0) -> None:
        """Ask for the Machine's deletion."""
        self.world.remove(MACHINE, self.machine)
        self.world.clock.advance(wait_s)

    def later(self, **by: float) -> datetime:
        self.world.clock.advance(timedelta(**by).total_seconds())
        return self.world.now()


def scene(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owners: Sequence[Fields] = (),
    cluster: Fields | None = None,
    **spec: Any,
) -> Scene:
    """A Machine of a cluster that is up, with neither host nor bootstrap config yet.

    There is a control plane Machine besides, so that nodes are drained.
    """
    world = World(outside=Workload(), performers=PERFORMERS, resolvers=ASKERS)
    for kind in (HOST, CONFIG, CONTROL_PLANE):
        world.define(kind, {"cluster.x-k8s.io/v1beta2": kind.version})
    world.define(OLD_HOST, {"cluster.x-k8s.io/v1beta1": "v1alpha1"})
    world.add(CLUSTER, _merged(_CLUSTER, cluster or {}))
    world.add(MACHINE, _machine("cp1", {"cluster.x-k8s.io/control-plane": ""}, {}, ()))
    world.add(MACHINE, _machine("m1", labels or {}, annotations or {}, owners, **spec))
    return Scene(world)


def running(**arguments: Any) -> Scene:
    """A Machine with a host, bootstrap data and a Node that is well."""
    found = scene(**arguments)
    found.add_host()
    found.add_config()
    found.data_is_there()
    found.host_is_made()
    found.there.nodes["m1"] = node()
    found.settle()
    found.there.log.clear()
    found.world.emitted.clear()
    found.world.performed.clear()
    return found


_CLUSTER: Fields = {
    "metadata": {"name": CLUSTER_NAME, "namespace": NAMESPACE},
    "spec": {"infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "HostCluster", "name": CLUSTER_NAME}},
    "status": {
        "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True},
        "conditions": [
            {
                "type": "ControlPlaneInitialized",
                "status": "True",
                "reason": "Initialized",
                "message": "",
                "lastTransitionTime": "2025-12-01T00:00:00Z",
            },
            {
                "type": "InfrastructureReady",
                "status": "True",
                "reason": "Ready",
                "message": "",
                "lastTransitionTime": "2025-12-01T00:00:00Z",
            },
        ],
    },
}


def _machine(
    name: str, labels: dict[str, str], annotations: dict[str, str], owners: Sequence[Fields], **spec: Any
) -> Fields:
    bootstrap = {"configRef": reference(CONFIG, f"b{name[1:]}")} if name == "m1" else {"dataSecretName": "given"}
    host = reference(HOST, "h1" if name == "m1" else f"h-{name}")
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": list(owners),
        },
        "spec": {"clusterName": CLUSTER_NAME, "bootstrap": bootstrap, "infrastructureRef": host, **spec},
    }


def _merged(base: Fields, change: Fields) -> Fields:
    merged: Fields = patches.apply(base, change)
    return merged
