"""A world with one control plane, and a small cluster behind it: hosts, nodes, static pods, members of etcd.

`environment` plays everybody else: the infrastructure provider, kubeadm on the hosts, the controllers of Machines and
of health checks. It holds the control plane's controller to what must never happen: a host that goes while its etcd
member is in the cluster, a quorum lost by our own act, more Machines than the surge allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinepool import MACHINE_POOL
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.core.node import NodeCondition, Taint
from ironbell.api.core.secret import SECRET, SECRET_METADATA
from ironbell.api.meta import to_builtin
from ironbell.api.unstructured import dynamic_kind
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.clusters.secrets import key_pair_secret, kubeconfig_secret
from ironbell.contract.pki import KeyPair
from ironbell.controllers.kubeadm.controlplane.machines.configspec import is_join
from ironbell.controllers.kubeadm.controlplane.machines.hook import RELEASE
from ironbell.controllers.kubeadm.controlplane.names import ANNOTATION_HOOK
from ironbell.controllers.kubeadm.controlplane.reconciler import ControlPlaneReconciler
from ironbell.controllers.kubeadm.controlplane.workload import effects
from ironbell.controllers.kubeadm.controlplane.workload.certificates import (
    CREATE_CERTIFICATES,
    CREATE_KUBECONFIG,
    ROTATE_KUBECONFIG,
)
from ironbell.controllers.kubeadm.controlplane.workload.kubeadmconfigmap import upgraded
from ironbell.controllers.kubeadm.controlplane.workload.queries import (
    Addons,
    AddonsView,
    Components,
    ComponentsView,
    EtcdCluster,
    EtcdView,
    KubeadmConfigMap,
    KubeconfigEnd,
    PodAnswer,
    PodView,
    ServingCertificate,
)
from ironbell.kube.decision import Action, MergePatch, create
from ironbell.kube.testing.world import World
from ironbell.workload.access import NotConnected
from ironbell.workload.etcd import EtcdError, EtcdUnreachableError, Member
from ironbell.workload.queries import Connection, ConnectionState, NodeByName, NodeByProviderId, NodeView

NS = "default"
KEY = (NS, "cp")
INFRA_GROUP = "infrastructure.cluster.x-k8s.io"
TEMPLATE = dynamic_kind(INFRA_GROUP, "v1beta2", "DevMachineTemplate", "devmachinetemplates")
INFRA = dynamic_kind(INFRA_GROUP, "v1beta2", "DevMachine", "devmachines")
CONTRACT = {"cluster.x-k8s.io/v1beta2": "v1beta2"}
LABEL = "node-role.kubernetes.io/control-plane"
FINALIZER = "machine.cluster.x-k8s.io"
PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
KUBEADM_CONFIG_TEXT = """apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: c
controllerManager: {}
dns: {}
etcd:
  local:
    dataDir: ""
kind: ClusterConfiguration
kubernetesVersion: v1.33.0
networking: {}
proxy: {}
scheduler: {}
"""


@dataclass
class Host:
    """A host of the control plane, named like its Machine."""

    provider_id: str
    alive: bool = True
    joined: bool = False
    since: str = ""
    version: str = ""


@dataclass
class SmallCluster:
    """What is behind the API of the workload cluster, and what others are told to do."""

    hosts: dict[str, Host] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    leader: str = ""
    config: str = ""
    kube_proxy: str = "registry.k8s.io/kube-proxy:v1.33.0"
    coredns: str = "registry.k8s.io/coredns/coredns:v1.12.0"
    stuck: set[str] = field(default_factory=set)
    """Machines whose hosts never come up."""
    health_checks: bool = False
    external_etcd: bool = False
    certificate_lifetime: timedelta = timedelta(days=365)
    ids: int = 0
    most: int = 0
    """Most Machines that there ever were at once."""
    log: list[str] = field(default_factory=list)

    @property
    def alive(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.alive and host.joined]

    @property
    def has_quorum(self) -> bool:
        living = [name for name in self.members if name in self.alive]
        return self.external_etcd or len(living) >= len(self.members) // 2 + 1

    def elect(self) -> None:
        """Let a living member lead, if the leader is gone."""
        living = [name for name in self.members if name in self.alive]
        if self.leader not in living:
            self.leader = living[0] if living and self.has_quorum else ""

    def kill(self, name: str) -> None:
        """The host dies."""
        self.hosts[name].alive = False
        self.elect()


def plane_world(replicas: int = 1, *, kcp: dict[str, Any] | None = None, **spec: Any) -> World:
    """A world with a Cluster whose infrastructure is there, and a control plane that has yet to be made."""
    performers = {
        CREATE_CERTIFICATES: _make_certificates,
        CREATE_KUBECONFIG: _make_kubeconfig,
        ROTATE_KUBECONFIG: _rotate_kubeconfig,
        effects.MOVE_LEADER: _move_leader,
        effects.REMOVE_MEMBER: _remove_member,
        effects.PREPARE_UPGRADE: _prepare_upgrade,
        effects.SET_KUBE_PROXY: _set_kube_proxy,
        effects.SET_COREDNS: _set_coredns,
    }
    resolvers = {
        Connection: _connection,
        NodeByName: _node,
        NodeByProviderId: _nodes_of,
        Components: _components,
        EtcdCluster: _etcd,
        KubeadmConfigMap: _kubeadm_config,
        Addons: lambda world, _query: AddonsView(world.outside.kube_proxy, world.outside.coredns, ".:53 {}"),
        ServingCertificate: _serving_certificate,
        KubeconfigEnd: lambda world, _query: world.now() + timedelta(days=365),
    }
    world = World(outside=SmallCluster(), performers=performers, resolvers=resolvers, environment=environment)
    world.api.serve([CLUSTER, MACHINE, MACHINE_POOL, KUBEADM_CONFIG, KUBEADM_CONTROL_PLANE, SECRET, SECRET_METADATA])
    world.define(TEMPLATE, CONTRACT)
    world.define(INFRA, CONTRACT)
    cluster = world.add(
        CLUSTER,
        {
            "metadata": {"name": "c", "namespace": NS},
            "spec": {
                "controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443},
                "controlPlaneRef": {
                    "apiGroup": KUBEADM_CONTROL_PLANE.group,
                    "kind": "KubeadmControlPlane",
                    "name": "cp",
                },
            },
            "status": {"initialization": {"infrastructureProvisioned": True}},
        },
    )
    world.add(TEMPLATE, {"metadata": {"name": "t", "namespace": NS}, "spec": {"template": {"spec": {"a": 1}}}})
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "c", "uid": cluster.metadata.uid}
    world.add(
        KUBEADM_CONTROL_PLANE,
        {
            "metadata": {"name": "cp", "namespace": NS, "ownerReferences": [owner], **(kcp or {})},
            "spec": {
                "replicas": replicas,
                "version": "v1.33.0",
                "machineTemplate": {
                    "spec": {"infrastructureRef": {"apiGroup": INFRA_GROUP, "kind": "DevMachineTemplate", "name": "t"}}
                },
                **spec,
            },
        },
    )
    return world


def run(world: World, seconds: float = 600.0) -> KubeadmControlPlane:
    """Let everybody work until nothing changes, and time pass where that makes something happen."""
    world.settle(ControlPlaneReconciler(), horizon_s=seconds, max_rounds=2000)
    return control_plane(world)


def control_plane(world: World) -> KubeadmControlPlane:
    return world.require(KUBEADM_CONTROL_PLANE, *KEY)


def machines(world: World) -> Sequence[Machine]:
    return world.list(MACHINE, NS)


def change(world: World, **spec: Any) -> None:
    """What a user patches into the spec."""
    world.change(KUBEADM_CONTROL_PLANE, control_plane(world), {"spec": spec})


def environment(world: World) -> None:
    """Everybody else, one step each."""
    outside: SmallCluster = world.outside
    kcp = world.get(KUBEADM_CONTROL_PLANE, *KEY)
    everybody = machines(world)
    outside.most = max(outside.most, len(everybody))
    if kcp is not None and kcp.spec.replicas is not None:
        surge = kcp.spec.rollout.strategy.rolling_update.max_surge
        allowed = 1 if surge is None else int(surge)
        if all(machine.metadata.deletion_timestamp is None for machine in everybody):
            limit = max(kcp.spec.replicas + allowed, len(outside.hosts))
            assert len(everybody) <= limit, f"{len(everybody)} Machines for {kcp.spec.replicas} replicas"
    for machine in everybody:
        if machine.metadata.deletion_timestamp is not None:
            _release(world, machine, whole=kcp is None or kcp.metadata.deletion_timestamp is not None)
        else:
            _bring_up(world, machine)
    outside.elect()
    _push(world)


def _push(world: World) -> None:
    """What is pushed from a workload cluster: answers that are not true any more."""
    for query in [q for q in world.facts if isinstance(q, Connection | NodeByName)]:
        fact = world.facts[query]
        try:
            is_true = fact.error is None and fact.value == world.resolvers[type(query)](world, query)
        except NotConnected:
            is_true = fact.error is not None
        if not is_true:
            del world.facts[query]


def _bring_up(world: World, machine: Machine) -> None:
    outside: SmallCluster = world.outside
    name = machine.metadata.name
    if FINALIZER not in machine.metadata.finalizers:
        world.change(MACHINE, machine, {"metadata": {"finalizers": [FINALIZER]}})
        return
    infra = world.get(INFRA, NS, name)
    config = world.get(KUBEADM_CONFIG, NS, name)
    assert infra is not None, f"Machine {name} was made before its infrastructure machine"
    assert config is not None, f"Machine {name} was made before its KubeadmConfig"
    if not machine.spec.provider_id:
        outside.hosts[name] = Host(f"dev://{name}", version=machine.spec.version)
        world.change(MACHINE, machine, {"spec": {"providerID": f"dev://{name}"}})
        return
    host = outside.hosts[name]
    if not host.joined and name not in outside.stuck and host.alive:
        _join(outside, name, joins=is_join(to_builtin(config.spec)), now=world.now())
        return
    if host.joined and not machine.status.node_ref.name:
        conditions = [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]
        held = [to_builtin(c) for c in machine.status.conditions]
        status = {"nodeRef": {"name": name}, "conditions": [*held, *conditions]}
        world.set_status(MACHINE, machine, status)
        return
    _check_health(world, machine, host)


def _join(outside: SmallCluster, name: str, *, joins: bool, now: datetime) -> None:
    host = outside.hosts[name]
    if not joins:
        assert not outside.members, "kubeadm init was run twice"
        outside.config = KUBEADM_CONFIG_TEXT
    elif not outside.has_quorum or not outside.alive:
        return
    host.joined, host.since = True, rfc3339(now - timedelta(minutes=1))
    if not outside.external_etcd:
        outside.ids += 1
        outside.members[name] = outside.ids
    outside.elect()
    outside.log.append(f"joined {name}")


def _check_health(world: World, machine: Machine, host: Host) -> None:
    if not world.outside.health_checks:
        return
    sick = not host.alive or machine.metadata.name in world.outside.stuck
    held = {c.type: c for c in machine.status.conditions}
    if sick and "HealthCheckSucceeded" not in held:
        marks = [
            {"type": type_, "status": "False", "reason": "NodeDead", "message": ""}
            for type_ in ("HealthCheckSucceeded", "OwnerRemediated")
        ]
        conditions = [to_builtin(c) for c in machine.status.conditions]
        world.set_status(MACHINE, machine, {"conditions": [*conditions, *marks]})


def _release(world: World, machine: Machine, *, whole: bool) -> None:
    outside: SmallCluster = world.outside
    name = machine.metadata.name
    deleting = next((c for c in machine.status.conditions if c.type == "Deleting"), None)
    if deleting is None:
        waits = {"type": "Deleting", "status": "True", "reason": "WaitingForPreTerminateHook", "message": ""}
        conditions = [to_builtin(c) for c in machine.status.conditions]
        world.set_status(MACHINE, machine, {"conditions": [*conditions, waits]})
        return
    if ANNOTATION_HOOK in machine.metadata.annotations:
        return
    last = len(machines(world)) == 1
    if not whole and not last:
        assert name not in outside.members, f"host of {name} goes while its etcd member is in the cluster"
    outside.hosts.pop(name, None)
    outside.members.pop(name, None) if whole or last else None
    outside.elect()
    outside.log.append(f"released {name}")
    for kind in (INFRA, KUBEADM_CONFIG):
        part = world.get(kind, NS, name)
        if part is not None:
            world.remove(kind, part)
    world.change(MACHINE, world.require(MACHINE, NS, name), {"metadata": {"finalizers": None}})


def _make_certificates(world: World, arguments: Any) -> Sequence[Action]:
    pair = KeyPair(b"certificate", b"key")
    return [
        create(SECRET, key_pair_secret(arguments.cluster, purpose, pair, arguments.owner))
        for purpose in arguments.purposes
    ]


def _make_kubeconfig(world: World, arguments: Any) -> Sequence[Action]:
    return [create(SECRET, kubeconfig_secret(arguments.cluster, b"kubeconfig", arguments.owner))]


def _rotate_kubeconfig(world: World, arguments: Any) -> Sequence[Action]:
    return [MergePatch(SECRET, NS, "c-kubeconfig", {"data": {"value": "bmV3"}})]


def _living(world: World, nodes: Sequence[str]) -> None:
    if not any(node in world.outside.alive for node in nodes):
        raise EtcdUnreachableError("connection refused")
    if not world.outside.has_quorum:
        raise EtcdError("no quorum")


def _move_leader(world: World, arguments: Any) -> Sequence[Action]:
    outside: SmallCluster = world.outside
    _living(world, [arguments.node])
    if outside.leader == arguments.node:
        outside.leader = next(c for c in arguments.candidates if c in outside.members and c in outside.alive)
        outside.log.append(f"leader {outside.leader}")
    return []


def _remove_member(world: World, arguments: Any) -> Sequence[Action]:
    outside: SmallCluster = world.outside
    _living(world, arguments.nodes)
    gone = [name for name, number in outside.members.items() if number == arguments.member_id]
    for name in gone:
        left = [other for other in outside.members if other != name]
        if name in outside.alive and len(set(left) & set(outside.alive)) < len(left) // 2 + 1:
            raise EtcdError("etcdserver: unhealthy cluster")
        assert name != outside.leader, "the leader is taken out"
        del outside.members[name]
        outside.log.append(f"removed {name}")
        assert outside.has_quorum, f"the quorum is lost by removing {name}"
        if name in outside.hosts:
            outside.hosts[name].alive = False
    if arguments.released is None:
        return []
    namespace, name = arguments.released
    return [MergePatch(MACHINE, namespace, name, RELEASE)]


def _prepare_upgrade(world: World, arguments: Any) -> Sequence[Action]:
    world.outside.config = upgraded(world.outside.config, arguments.desired, arguments.version)
    return []


def _set_kube_proxy(world: World, arguments: Any) -> Sequence[Action]:
    world.outside.kube_proxy = arguments.image
    return []


def _set_coredns(world: World, arguments: Any) -> Sequence[Action]:
    world.outside.coredns = arguments.change.to_image
    return []


def _connection(world: World, _query: Connection) -> ConnectionState:
    outside: SmallCluster = world.outside
    if outside.alive and outside.has_quorum:
        return ConnectionState(connected=True, last_probe_success=datetime(2026, 1, 1, tzinfo=UTC))
    seen = None if not outside.config else datetime(2026, 1, 1, tzinfo=UTC)
    return ConnectionState(connected=False, last_probe_success=seen, consecutive_failures=1, error="refused")


def _connected(world: World, query: Any) -> None:
    if not (world.outside.alive and world.outside.has_quorum):
        raise NotConnected(query.cluster)


def _nodes_of(world: World, query: NodeByProviderId) -> tuple[NodeView, ...]:
    hosts = world.outside.hosts.items()
    names = [name for name, host in hosts if host.provider_id == query.provider_id]
    found = [_node(world, NodeByName(query.cluster, name)) for name in names]
    return tuple(node for node in found if node is not None)


def _node(world: World, query: NodeByName) -> NodeView | None:
    _connected(world, query)
    host = world.outside.hosts.get(query.name)
    if host is None or not host.joined:
        return None
    ready = NodeCondition(type="Ready", status="True" if host.alive else "Unknown")
    taints = [Taint(key=LABEL, effect="NoSchedule")]
    if not host.alive:
        taints.append(Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"))
    return NodeView(
        query.name,
        provider_id=host.provider_id,
        labels={LABEL: ""},
        taints=tuple(taints),
        conditions=(ready,),
        creation_timestamp=host.since,
    )


def _components(world: World, query: Components) -> ComponentsView:
    _connected(world, query)
    outside: SmallCluster = world.outside
    pods = PODS if query.etcd else PODS[:3]
    ready = PodView("Running", (("Ready", "True"),))
    return ComponentsView(
        tuple(sorted(name for name, host in outside.hosts.items() if host.joined)),
        tuple(PodAnswer(node, pod, ready if node in outside.hosts else None) for node in query.nodes for pod in pods),
    )


def _serving_certificate(world: World, query: ServingCertificate) -> datetime:
    _connected(world, query)
    outside: SmallCluster = world.outside
    return parse_rfc3339(outside.hosts[query.node].since) + outside.certificate_lifetime


def _etcd(world: World, query: EtcdCluster) -> EtcdView:
    _connected(world, query)
    _living(world, query.nodes)
    outside: SmallCluster = world.outside
    outside.elect()
    members = tuple(Member(number, name) for name, number in outside.members.items())
    return EtcdView(members, outside.members[outside.leader])


def _kubeadm_config(world: World, query: KubeadmConfigMap) -> str | None:
    if not world.outside.alive:
        raise NotConnected(query.cluster)
    return world.outside.config or None
