"""The state that the reconciler of KubeadmControlPlanes gathers from the caches, and its watches.

Secrets are watched without their contents. Only the creation and deletion of the cluster's other Machines matter: the
deletion of a control plane waits for the workers.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(initControlPlaneScope, ClusterToKubeadmControlPlane).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machinepool import MACHINE_POOL, MachinePool
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import Resource
from ironbell.contract.clusters import external
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.secrets import Purpose, parse_secret_name, secret_name
from ironbell.contract.owners import group_of
from ironbell.controllers.kubeadm.controlplane.model import condition, has_node, is_deleting
from ironbell.controllers.kubeadm.controlplane.names import HEALTH_CHECK_SUCCEEDED, MachineCondition
from ironbell.controllers.kubeadm.controlplane.workload import expiry
from ironbell.controllers.kubeadm.controlplane.workload.queries import (
    CALM_S,
    KUBECONFIG_S,
    ROLLOUT_S,
    STEADY_S,
    Addons,
    AddonsView,
    Components,
    ComponentsView,
    EtcdCluster,
    EtcdView,
    KubeadmConfigMap,
    KubeconfigEnd,
    ServingCertificate,
)
from ironbell.kube.decision import Fact, Key
from ironbell.kube.manager.failures import Failure
from ironbell.kube.predicates import Predicate, actionable, any_of, changed, created_or_deleted, desired_state_changed
from ironbell.kube.reconciler import Cache, Changes, Index, Watch, owned_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, ConnectionState, NodeByName, NodeByProviderId, NodeView

KIND: Final = KUBEADM_CONTROL_PLANE.kind


def cluster_of(kcp: Resource) -> str:
    """Return the name of the Cluster that owns a control plane; empty before it is owned."""
    owners = [owner for owner in kcp.metadata.owner_references if owner.kind == CLUSTER.kind]
    return next((owner.name for owner in owners if group_of(owner.api_version) == CLUSTER.group), "")


def _place(namespace: str, cluster: str) -> list[str]:
    return [f"{namespace}/{cluster}"] if cluster else []


BY_CLUSTER: Final = Index(
    KUBEADM_CONTROL_PLANE, "kcp-cluster", lambda kcp: _place(kcp.metadata.namespace, cluster_of(kcp))
)
MACHINES_BY_CLUSTER: Final = Index(
    MACHINE, "kcp-machine-cluster", lambda machine: _place(machine.metadata.namespace, machine.spec.cluster_name)
)
CONTROL_PLANE_MACHINES: Final = Index(
    MACHINE,
    "kcp-control-plane-machine",
    lambda machine: (
        _place(machine.metadata.namespace, machine.metadata.labels.get(LABEL_CLUSTER_NAME, ""))
        if LABEL_CONTROL_PLANE in machine.metadata.labels
        else []
    ),
)
POOLS_BY_CLUSTER: Final = Index(
    MACHINE_POOL, "kcp-pool-cluster", lambda pool: _place(pool.metadata.namespace, pool.spec.cluster_name)
)
INDEXES: Final[Sequence[Index[Any]]] = (BY_CLUSTER, MACHINES_BY_CLUSTER, CONTROL_PLANE_MACHINES, POOLS_BY_CLUSTER)


def _planes_of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    reference = cluster.spec.control_plane_ref
    return [(cluster.metadata.namespace, reference.name)] if reference.kind == KIND else []


def _planes_in(namespace: str, cluster: str, cache: Cache) -> list[Key]:
    return [kcp.key for place in _place(namespace, cluster) for kcp in cache.indexed(BY_CLUSTER, place)]


def _planes_of_machine(member: Machine | MachinePool, cache: Cache) -> Iterable[Key]:
    return _planes_in(member.metadata.namespace, member.spec.cluster_name, cache)


def _planes_of_config(config: KubeadmConfig, cache: Cache) -> Iterable[Key]:
    if LABEL_CONTROL_PLANE not in config.metadata.labels:
        return []
    return _planes_in(config.metadata.namespace, config.metadata.labels.get(LABEL_CLUSTER_NAME, ""), cache)


def _planes_of_secret(secret: SecretMetadata, cache: Cache) -> Iterable[Key]:
    parsed = parse_secret_name(secret.metadata.name)
    return [] if parsed is None else _planes_in(secret.metadata.namespace, parsed[0], cache)


def _relevant_fields(machine: Machine) -> tuple[Any, ...]:
    """Return the fields of a Machine that decisions depend on; others are only aggregated."""
    meta, status = machine.metadata, machine.status
    return (
        (meta.labels, meta.annotations, meta.finalizers, meta.owner_references, meta.deletion_timestamp),
        (status.node_ref, status.deletion, status.certificates_expiry_date),
        [condition(machine, type_) for type_ in _REMEDIATION],
    )


_CLUSTER_CHANGED: Final[Predicate[Cluster]] = any_of(
    desired_state_changed, changed(lambda cluster: (cluster.status.initialization, cluster.status.failure_domains))
)
"""Whether a relevant field of a Cluster changed. Most of its status is copied from the control plane."""
ROLL_UP_S: Final = 1.0
"""Delay before changed conditions are aggregated, so that several changes are aggregated together."""
_REPORTS: Final = frozenset(
    {
        *("replicas", "ready_replicas", "available_replicas", "up_to_date_replicas"),
        *("selector", "version", "versions", "observed_generation"),
    }
)
_REMEDIATION: Final = (HEALTH_CHECK_SUCCEEDED, MachineCondition.OWNER_REMEDIATED)
OWN: Final = Changes(urgent=actionable(reports=_REPORTS), delay_s=ROLL_UP_S, reporting=True)
PARTS: Final = Changes(relevant=desired_state_changed)
"""Changes of infrastructure machines and templates, of which only the desired state is read."""
WATCHES: Final[Sequence[Watch[Any]]] = (
    Watch(CLUSTER, _planes_of_cluster, _CLUSTER_CHANGED),
    owned_by(KUBEADM_CONTROL_PLANE, MACHINE, relevant=changed(_relevant_fields)),
    owned_by(KUBEADM_CONTROL_PLANE, MACHINE, delay_s=ROLL_UP_S, reporting=True),
    Watch(MACHINE, _planes_of_machine, created_or_deleted),
    Watch(MACHINE_POOL, _planes_of_machine, created_or_deleted),
    Watch(KUBEADM_CONFIG, _planes_of_config, desired_state_changed),
    Watch(SECRET_METADATA, _planes_of_secret),
)


@dataclass(frozen=True)
class Facts:
    """Facts about the workload cluster; None if a query was never made."""

    connection: Fact[ConnectionState] | None = None
    nodes: Mapping[str, Fact[NodeView | None] | None] = field(default_factory=dict)
    unnamed: Mapping[str, Fact[tuple[NodeView, ...]] | None] = field(default_factory=dict)
    strangers: Mapping[str, Fact[NodeView | None] | None] = field(default_factory=dict)
    components: Fact[ComponentsView] | None = None
    etcd: Fact[EtcdView] | None = None
    kubeadm_config: Fact[str | None] | None = None
    addons: Fact[AddonsView] | None = None
    kubeconfig_end: Fact[datetime | None] | None = None
    serving: Mapping[str, Fact[datetime] | None] = field(default_factory=dict)
    """Expiry of the API servers' serving certificates, by the name of their Machine."""


@dataclass(frozen=True)
class Queries:
    """The queries for `Facts`."""

    connection: Connection
    nodes: Mapping[str, NodeByName]
    unnamed: Mapping[str, NodeByProviderId]
    """Nodes of Machines that are being deleted without a known Node, by the Machine's name."""
    strangers: Mapping[str, NodeByName]
    """Nodes of etcd members without a Machine, by the member's name."""
    components: Components
    etcd: EtcdCluster
    kubeadm_config: KubeadmConfigMap
    addons: Addons
    serving: Mapping[str, ServingCertificate] = field(default_factory=dict)
    """Queries by the Machine's name, for Machines whose KubeadmConfig does not record the expiry."""


@dataclass(frozen=True)
class Observed:
    """A KubeadmControlPlane and the objects that it depends on."""

    kcp: KubeadmControlPlane
    cluster: Cluster | None = None
    machines: tuple[Machine, ...] = ()
    """Control plane Machines of the cluster that this control plane owns, by name."""
    strays: tuple[Machine, ...] = ()
    """Control plane Machines of the cluster without a controller, or with another one."""
    workers: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    """Workers and pools are gathered only while the control plane is being deleted."""
    configs: Mapping[str, KubeadmConfig] = field(default_factory=dict)
    """KubeadmConfigs by the name of their Machine."""
    infra: Mapping[str, External] = field(default_factory=dict)
    template: External | None = None
    secrets: Mapping[Purpose, SecretMetadata] = field(default_factory=dict)
    queries: Queries | None = None
    facts: Facts = field(default_factory=Facts)
    failure: Failure | None = None
    """The write that failed last time."""


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the state; None if the control plane does not exist."""
    kcp = cache.get(KUBEADM_CONTROL_PLANE, *key)
    if kcp is None:
        return None
    cluster = cache.get(CLUSTER, key[0], cluster_of(kcp)) if cluster_of(kcp) else None
    if cluster is None:
        return Observed(kcp)
    place = _place(*cluster.key)[0]
    plane_machines = cache.indexed(CONTROL_PLANE_MACHINES, place)
    machines = tuple(machine for machine in plane_machines if is_controlled_by(machine, kcp))
    deleting = kcp.metadata.deletion_timestamp is not None
    owned = {machine.key for machine in machines}
    others = cache.indexed(MACHINES_BY_CLUSTER, place) if deleting else ()
    workers = [machine.metadata.name for machine in others if machine.key not in owned]
    pools = [pool.metadata.name for pool in cache.indexed(POOLS_BY_CLUSTER, place)] if deleting else []
    configs = _configs(cache, machines)
    queries = _queries(cache, ClusterKey.of(cluster), machines, kcp)
    queries = replace(queries, serving=expiry.queries(ClusterKey.of(cluster), machines, configs))
    secrets = _secrets(cache, cluster.key)
    return Observed(
        kcp,
        cluster,
        machines,
        strays=tuple(machine for machine in plane_machines if machine.key not in owned),
        workers=tuple(sorted(workers)),
        pools=tuple(sorted(pools)),
        configs=configs,
        infra={
            machine.metadata.name: external.read_reference(cache, machine.spec.infrastructure_ref, key[0])
            for machine in machines
        },
        template=external.read_reference(cache, kcp.spec.machine_template.spec.infrastructure_ref, key[0]),
        secrets=secrets,
        queries=queries,
        facts=_facts(cache, queries, kubeconfig_query(ClusterKey.of(cluster), secrets)),
        failure=cache.failure(key),
    )


def is_controlled_by(obj: Resource, owner: Resource) -> bool:
    """Return whether the owner is the object's controller."""
    return any(ref.controller and ref.uid == owner.metadata.uid for ref in obj.metadata.owner_references)


def kubeconfig_query(cluster: ClusterKey, secrets: Mapping[Purpose, SecretMetadata]) -> KubeconfigEnd | None:
    """Return the query for the kubeconfig's expiry; None if there is no kubeconfig."""
    secret = secrets.get(Purpose.KUBECONFIG)
    return None if secret is None else KubeconfigEnd(cluster, secret.metadata.resource_version)


def _queries(cache: Cache, cluster: ClusterKey, machines: Sequence[Machine], kcp: KubeadmControlPlane) -> Queries:
    managed = not kcp.spec.kubeadm_config_spec.cluster_configuration.etcd.external.endpoints
    with_node = [machine for machine in machines if has_node(machine)]
    nodes = tuple(sorted(machine.status.node_ref.name for machine in with_node))
    # the Pods of a Machine that is being deleted may end at any moment, and so may its etcd member
    lasting = tuple(sorted(machine.status.node_ref.name for machine in with_node if not is_deleting(machine)))
    etcd = EtcdCluster(cluster, lasting or nodes)
    return Queries(
        Connection(cluster),
        {node: NodeByName(cluster, node) for node in nodes},
        {
            machine.metadata.name: NodeByProviderId(cluster, machine.spec.provider_id)
            for machine in machines
            if is_deleting(machine) and not has_node(machine) and machine.spec.provider_id
        },
        {name: NodeByName(cluster, name) for name in _strangers(cache.fact(etcd, CALM_S), nodes)} if managed else {},
        Components(cluster, lasting, managed),
        etcd,
        KubeadmConfigMap(cluster),
        Addons(cluster),
    )


def _strangers(etcd: Fact[EtcdView] | None, nodes: Sequence[str]) -> list[str]:
    members = etcd.value.members if etcd is not None and etcd.value is not None else ()
    return sorted({member.name for member in members} - {"", *nodes})


def _facts(cache: Cache, queries: Queries, kubeconfig: KubeconfigEnd | None) -> Facts:
    return Facts(
        connection=cache.fact(queries.connection, PUSHED_S),
        nodes={name: cache.fact(query, PUSHED_S) for name, query in queries.nodes.items()},
        unnamed={name: cache.fact(query, PUSHED_S) for name, query in queries.unnamed.items()},
        strangers={name: cache.fact(query, PUSHED_S) for name, query in queries.strangers.items()},
        components=cache.fact(queries.components, CALM_S),
        etcd=cache.fact(queries.etcd, CALM_S),
        kubeadm_config=cache.fact(queries.kubeadm_config, ROLLOUT_S),
        addons=cache.fact(queries.addons, STEADY_S),
        serving={name: cache.fact(query, expiry.MAX_AGE_S) for name, query in queries.serving.items()},
        kubeconfig_end=None if kubeconfig is None else cache.fact(kubeconfig, KUBECONFIG_S),
    )


def _configs(cache: Cache, machines: Iterable[Machine]) -> dict[str, KubeadmConfig]:
    configs = {}
    for machine in machines:
        reference = machine.spec.bootstrap.config_ref
        if reference.kind == KUBEADM_CONFIG.kind:
            config = cache.get(KUBEADM_CONFIG, machine.metadata.namespace, reference.name)
            if config is not None:
                configs[machine.metadata.name] = config
    return configs


def _secrets(cache: Cache, cluster: Key) -> dict[Purpose, SecretMetadata]:
    secrets = {purpose: cache.get(SECRET_METADATA, cluster[0], secret_name(cluster[1], purpose)) for purpose in Purpose}
    return {purpose: secret for purpose, secret in secrets.items() if secret is not None}
