"""The state that a decision on a KubeadmConfig depends on, read from the caches.

Secrets are watched without their contents: only their existence and their owners are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.machinepool import MACHINE_POOL
from ironbell.api.core.configmap import CONFIG_MAP
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.unstructured import plain
from ironbell.contract.clusters.bootstrap import reported_failure
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import read_reference
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.clusters.secrets import Purpose
from ironbell.contract.clusters.secrets import secret_name as cluster_secret_name
from ironbell.controllers.kubeadm.config import owner
from ironbell.controllers.kubeadm.config.certificates import places
from ironbell.controllers.kubeadm.config.effects import ConfigKey
from ironbell.controllers.kubeadm.config.lock import Lock, holder_of, lock_name
from ironbell.controllers.kubeadm.config.owner import ConfigOwner
from ironbell.controllers.kubeadm.config.rendering import files
from ironbell.controllers.kubeadm.config.rendering.kubeadm import ClusterFacts, Spec
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.tokens import Lifetime, TokenError, TokenOf, TokenState, token_id
from ironbell.kube.conditions import is_true
from ironbell.kube.decision import Fact, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, ConnectionState

CONTROL_PLANE_INITIALIZED: Final = "ControlPlaneInitialized"


def _cluster_fields(cluster: Cluster) -> tuple[Any, ...]:
    """Return the fields of a Cluster that bootstrap data depend on; its status changes often."""
    initialized = is_true(cluster.status.conditions, CONTROL_PLANE_INITIALIZED)
    return cluster.spec, cluster.status.initialization.infrastructure_provisioned, initialized


WATCHES: Final[Sequence[Watch[Any]]] = (
    # its own Machine, and the one that holds the init lock
    read_by(MACHINE, relevant=changed(owner.of_machine)),
    read_by(MACHINE_POOL, relevant=changed(owner.of_pool)),
    read_by(CLUSTER, relevant=changed(_cluster_fields)),
    read_by(SECRET_METADATA),
    read_by(CONFIG_MAP),
    DEFINITIONS,
)
INDEXES: Final[Sequence[Index[Any]]] = (BY_GROUP_KIND,)


@dataclass(frozen=True, slots=True)
class Observed:
    """A KubeadmConfig and the objects that its data depend on."""

    config: KubeadmConfig
    owner: ConfigOwner | None
    cluster: Cluster | None
    data_secret: SecretMetadata | None = None
    missing_pairs: tuple[Purpose, ...] = ()
    """Key pairs that the machine needs and that do not exist."""
    missing_references: tuple[str, ...] = ()
    """Problems with references of files and users."""
    control_plane_version: str = ""
    control_plane_problem: str = ""
    """Reason why the control plane's version is not known; empty if no file needs it."""
    lock: Lock | None = None
    connection: Fact[ConnectionState] | None = None
    token: Fact[TokenState] | None = None
    failure: str = ""
    """Reason why the host did not become a node."""

    @property
    def created(self) -> bool:
        """Return whether the data exist."""
        return bool(self.config.status.initialization.data_secret_created)

    @property
    def initialized(self) -> bool:
        """Return whether a control plane exists that can be joined."""
        return self.cluster is not None and is_true(self.cluster.status.conditions, CONTROL_PLANE_INITIALIZED)

    @property
    def config_key(self) -> ConfigKey:
        return ConfigKey(*self.config.key, self.config.metadata.uid)


@dataclass(frozen=True, slots=True)
class Scene:
    """Observed state whose owner and Cluster exist."""

    observed: Observed
    owner: ConfigOwner
    cluster: Cluster

    @property
    def cluster_key(self) -> ClusterKey:
        return ClusterKey.of(self.cluster)

    @property
    def endpoint(self) -> str:
        """`host:port` of the control plane; empty until it is known."""
        return endpoint_of(self.cluster)


def observe(cache: Cache, key: Key, lifetime: Lifetime) -> Observed | None:
    """Read the caches; None if there is nothing to decide."""
    config = cache.get(KUBEADM_CONFIG, *key)
    if config is None or is_deleting(config):
        return None
    config_owner = owner.owner_of(cache, config)
    cluster = cache.get(CLUSTER, key[0], config_owner.cluster) if config_owner is not None else None
    if config_owner is None or cluster is None:
        return Observed(config, config_owner, cluster)
    data_secret = cache.get(SECRET_METADATA, *key)
    observed = Observed(config, config_owner, cluster, data_secret)
    connection = cache.fact(Connection(ClusterKey.of(cluster)), PUSHED_S)
    if observed.created:
        return Observed(
            config,
            config_owner,
            cluster,
            data_secret,
            lock=_lock(cache, config_owner, cluster),
            connection=connection,
            token=_token(cache, config, cluster, lifetime),
            failure="" if config_owner.has_nodes else _failure(cache, config_owner, key[0]),
        )
    spec: Spec = plain(config).get("spec", {})
    version, problem = _control_plane_version(cache, spec, cluster)
    return Observed(
        config,
        config_owner,
        cluster,
        data_secret,
        missing_pairs=_missing_pairs(cache, spec, role_of(observed, config_owner), cluster),
        missing_references=_missing_references(cache, spec, key[0]),
        control_plane_version=version,
        control_plane_problem=problem,
        lock=_lock(cache, config_owner, cluster),
        connection=connection,
    )


def role_of(observed: Observed, owner: ConfigOwner) -> Role:
    """Return the role that the machine gets."""
    if not owner.is_control_plane:
        return Role.WORKER
    return Role.CONTROL_PLANE if observed.initialized else Role.INIT


def endpoint_of(cluster: Cluster) -> str:
    """Return `host:port` of a Cluster's control plane; empty until it is known."""
    endpoint = cluster.spec.control_plane_endpoint
    if not endpoint.host or not endpoint.port:
        return ""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def facts_of(cluster: Cluster, version: str) -> ClusterFacts:
    """Return the facts about a Cluster in kubeadm's configuration."""
    network = cluster.spec.cluster_network
    return ClusterFacts(
        cluster.metadata.name,
        version,
        endpoint_of(cluster),
        network.service_domain,
        ",".join(network.services.cidr_blocks),
        ",".join(network.pods.cidr_blocks),
    )


def _missing_pairs(cache: Cache, spec: Spec, role: Role, cluster: Cluster) -> tuple[Purpose, ...]:
    needed = [place.purpose for place in places(spec.get("clusterConfiguration", {}))]
    if role is Role.WORKER:
        needed = [Purpose.CLUSTER_CA]
    namespace, name = cluster.key
    return tuple(
        purpose
        for purpose in needed
        if cache.get(SECRET_METADATA, namespace, cluster_secret_name(name, purpose)) is None
    )


def _missing_references(cache: Cache, spec: Spec, namespace: str) -> tuple[str, ...]:
    names = files.secret_names(spec)
    existing = frozenset(name for name in names if cache.get(SECRET_METADATA, namespace, name) is not None)
    return tuple(files.missing_references(spec, existing))


def _control_plane_version(cache: Cache, spec: Spec, cluster: Cluster) -> tuple[str, str]:
    """Return the version, and the reason if it is not known."""
    reference = cluster.spec.control_plane_ref
    if not files.has_templates(spec) or not reference.name:
        return "", ""
    plane = read_reference(cache, reference, cluster.metadata.namespace)
    return (ControlPlane.of(plane).version, "") if plane.exists else ("", str(plane))


def _lock(cache: Cache, owner: ConfigOwner, cluster: Cluster) -> Lock | None:
    if not owner.is_control_plane:
        return None
    namespace, name = cluster.key
    config_map = cache.get(CONFIG_MAP, namespace, lock_name(name))
    if config_map is None:
        return None
    holder = holder_of(config_map)
    return Lock(config_map, holder, cache.get(MACHINE, namespace, holder) is not None)


def _token(cache: Cache, config: KubeadmConfig, cluster: Cluster, lifetime: Lifetime) -> Fact[TokenState] | None:
    query = token_query(config, cluster)
    return None if query is None else cache.fact(query, lifetime.check_interval_s)


def token_query(config: KubeadmConfig, cluster: Cluster) -> TokenOf | None:
    """Return the query for the state of the spec's token; None if the spec has no valid token."""
    try:
        return TokenOf(ClusterKey.of(cluster), token_id(config.spec.join_configuration.discovery.bootstrap_token.token))
    except TokenError:
        return None


def _failure(cache: Cache, owner: ConfigOwner, namespace: str) -> str:
    if not owner.infrastructure.name:
        return ""
    infrastructure = read_reference(cache, owner.infrastructure, namespace)
    return reported_failure(infrastructure.obj) if infrastructure.obj is not None else ""
