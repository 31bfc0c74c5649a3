"""A world for the controllers of Cluster API: providers of both contracts, and Machines that come up and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.base.clock import rfc3339
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fields
from ironbell.kube.testing.world import World
from ironbell.workload.queries import Connection, ConnectionState

NAMESPACE = "default"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
LABELS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
OLD_LABELS = {"cluster.x-k8s.io/v1beta1": "v1beta1"}

INFRA_CLUSTER = dynamic_kind(INFRASTRUCTURE, "v1beta2", "FakeCluster", "fakeclusters")
INFRA_MACHINE = dynamic_kind(INFRASTRUCTURE, "v1beta2", "FakeMachine", "fakemachines")
INFRA_TEMPLATE = dynamic_kind(INFRASTRUCTURE, "v1beta2", "FakeMachineTemplate", "fakemachinetemplates")
OLD_INFRA_CLUSTER = dynamic_kind(INFRASTRUCTURE, "v1beta1", "OldCluster", "oldclusters")
CONFIG = dynamic_kind(BOOTSTRAP, "v1beta2", "FakeConfig", "fakeconfigs")
CONFIG_TEMPLATE = dynamic_kind(BOOTSTRAP, "v1beta2", "FakeConfigTemplate", "fakeconfigtemplates")
PLANE = dynamic_kind(CONTROL_PLANE, "v1beta2", "FakeControlPlane", "fakecontrolplanes")
KINDS = (INFRA_CLUSTER, INFRA_MACHINE, INFRA_TEMPLATE, CONFIG, CONFIG_TEMPLATE, PLANE)


def reference(kind: Any, name: str) -> dict[str, str]:
    """As specs have it."""
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


@dataclass
class Ground:
    """What Machines do by themselves."""

    comes_up: bool = True
    deletes_at_once: bool = True
    broken: set[str] = field(default_factory=set)
    """Machines that never become available."""
    most: int = 0
    """The most Machines there ever were."""
    least_available: int | None = None


def live(world: World) -> None:
    """One moment in the life of all Machines, in place of their controller and the provider."""
    ground: Ground = world.outside
    machines = world.list(MACHINE)
    ground.most = max(ground.most, len(machines))
    for machine in machines:
        if machine.metadata.deletion_timestamp is not None:
            if ground.deletes_at_once:
                _gone(world, machine)
        elif ground.comes_up and not machine.status.node_ref.name:
            come_up(world, machine, available=machine.metadata.name not in ground.broken)
    available = sum(
        (found := find_condition(machine.status.conditions, "Available")) is not None and found.status == "True"
        for machine in world.list(MACHINE)
    )
    if ground.least_available is not None:
        ground.least_available = min(ground.least_available, available)


def come_up(world: World, machine: Machine, *, available: bool = True, **more: str) -> Machine:
    """A Machine that has its Node."""
    states = {"Ready": available, "Available": available, "UpToDate": True, "NodeHealthy": available}
    status: Fields = {
        "nodeRef": {"name": machine.metadata.name},
        "conditions": [condition(world, name, good) for name, good in states.items()],
    }
    for name, value in more.items():
        status["conditions"].append(condition(world, name, value == "True"))
    return world.set_status(MACHINE, machine, status)


def condition(world: World, name: str, good: bool, reason: str = "", message: str = "") -> Fields:
    """A condition in plain data."""
    return {
        "type": name,
        "status": str(good),
        "reason": reason or (name if good else f"Not{name}"),
        "message": message,
        "lastTransitionTime": rfc3339(world.now()),
    }


def _gone(world: World, machine: Machine) -> None:
    for reference_, kind in (
        (machine.spec.infrastructure_ref, INFRA_MACHINE),
        (machine.spec.bootstrap.config_ref, CONFIG),
    ):
        found = world.get(kind, NAMESPACE, reference_.name)
        if found is not None:
            world.remove(kind, found)
    world.change(MACHINE, machine, {"metadata": {"finalizers": None}})


def capi_world(**ground: Any) -> World:
    """An empty world with the provider's kinds and templates."""
    world = World(
        outside=Ground(**ground),
        environment=live,
        resolvers={Connection: lambda _world, _query: ConnectionState(connected=False)},
    )
    for kind in KINDS:
        world.define(kind, LABELS)
    world.define(OLD_INFRA_CLUSTER, OLD_LABELS)
    world.api.serve([CLUSTER, MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_POOL, OLD_INFRA_CLUSTER, *KINDS])
    template(world, INFRA_TEMPLATE, "workers")
    template(world, CONFIG_TEMPLATE, "workers")
    return world


def template(world: World, kind: Kind[Unstructured], name: str, **metadata: Any) -> Unstructured:
    """A template of the provider."""
    body = {
        "spec": {"template": {"spec": {"size": name}}},
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
    }
    return world.add(kind, body)


def add_cluster(world: World, name: str = "prod", **spec: Any) -> Cluster:
    """A Cluster whose infrastructure is there; without a control plane object unless `spec` names one."""
    given = {"infrastructureRef": reference(INFRA_CLUSTER, name), **spec}
    return world.add(CLUSTER, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": given})


def machine_template(version: str = "v1.34.0", **spec: Any) -> Fields:
    """A template of Machines."""
    return {
        "metadata": {"labels": {"pool": "a", "cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {
            "clusterName": "prod",
            "version": version,
            "bootstrap": {"configRef": reference(CONFIG_TEMPLATE, "workers")},
            "infrastructureRef": reference(INFRA_TEMPLATE, "workers"),
            **spec,
        },
    }


def add_machine_set(
    world: World, replicas: int, *, name: str = "ms", annotations: dict[str, str] | None = None, **spec: Any
) -> MachineSet:
    """A MachineSet that stands alone."""
    body = {
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}},
        "spec": {
            "clusterName": "prod",
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": "a"}},
            "template": machine_template(),
            **spec,
        },
    }
    return world.add(MACHINE_SET, body)


def add_machine_deployment(
    world: World, replicas: int, *, name: str = "md", strategy: Fields | None = None, **spec: Any
) -> MachineDeployment:
    """A MachineDeployment."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    body = {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "clusterName": "prod",
            "replicas": replicas,
            "rollout": {"strategy": strategy or rolling},
            "selector": {"matchLabels": {"pool": "a"}},
            "template": machine_template(),
            **spec,
        },
    }
    return world.add(MACHINE_DEPLOYMENT, body)


def reported(obj: Any, name: str) -> tuple[str, str, str]:
    """Status, reason and message of one of an object's conditions."""
    found = find_condition(obj.status.conditions, name)
    assert found is not None, f"no condition {name}"
    return (found.status, found.reason, found.message)
