"""What the KubeadmConfig controller decides upon, read from the caches.

Secrets are watched without their contents: that one is there, and whose it is.
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
from ironbell.contract.clusters.bootstrap_failure import reported_failure
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
    """The few fields of a Cluster that bootstrap data depends on; its status changes often."""
    initialized = is_true(cluster.status.conditions, CONTROL_PLANE_INITIALIZED)
    return cluster.spec, cluster.status.initialization.infrastructure_provisioned, initialized


WATCHES: Final[Sequence[Watch[Any]]] = (
    # of its own Machine, and of the one that holds the init lock
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
    """A KubeadmConfig with all that its data depend on."""

    config: KubeadmConfig
    owner: ConfigOwner | None
    cluster: Cluster | None
    data_secret: SecretMetadata | None = None
    missing_pairs: tuple[Purpose, ...] = ()
    """Key pairs that the machine carries, or needs to know, and that are not there."""
    missing_references: tuple[str, ...] = ()
    """What is wrong with references of files and users."""
    control_plane_version: str = ""
    control_plane_problem: str = ""
    """Why the control plane's version is not known, where a file needs it."""
    lock: Lock | None = None
    connection: Fact[ConnectionState] | None = None
    token: Fact[TokenState] | None = None
    failure: str = ""
    """Why the host did not become a node."""

    @property
    def created(self) -> bool:
        """Whether the data were made."""
        return bool(self.config.status.initialization.data_secret_created)

    @property
    def initialized(self) -> bool:
        """Whether there is a control plane to join."""
        return self.cluster is not None and is_true(self.cluster.status.conditions, CONTROL_PLANE_INITIALIZED)

    @property
    def config_key(self) -> ConfigKey:
        return ConfigKey(*self.config.key, self.config.metadata.uid)


@dataclass(frozen=True, slots=True)
class Scene:
    """Observed where owner and Cluster are known to be there."""

    observed: Observed
    owner: ConfigOwner
    cluster: Cluster

    @property
    def cluster_key(self) -> ClusterKey:
        return ClusterKey.of(self.cluster)

    @property
    def endpoint(self) -> str:
        """`host:port` of the control plane; empty while it is not known."""
        return endpoint_of(self.cluster)


def observe(cache: Cache, key: Key, lifetime: Lifetime) -> Observed | None:
    """Read the caches; None when there is nothing to decide."""
    config = cache.get(KUBEADM_CONFIG, *key)
    if config is None or is_deleting(config):
        return None
    found = owner.owner_of(cache, config)
    cluster = cache.get(CLUSTER, key[0], found.cluster) if found is not None else None
    if found is None or cluster is None:
        return Observed(config, found, cluster)
    data_secret = cache.get(SECRET_METADATA, *key)
    observed = Observed(config, found, cluster, data_secret)
    connection = cache.fact(Connection(ClusterKey.of(cluster)), PUSHED_S)
    if observed.created:
        return Observed(
            config,
            found,
            cluster,
            data_secret,
            lock=_lock(cache, found, cluster),
            connection=connection,
            token=_token(cache, config, cluster, lifetime),
            failure="" if found.has_nodes else _failure(cache, found, key[0]),
        )
    spec: Spec = plain(config).get("spec", {})
    version, problem = _control_plane_version(cache, spec, cluster)
    return Observed(
        config,
        found,
        cluster,
        data_secret,
        missing_pairs=_missing_pairs(cache, spec, role_of(observed, found), cluster),
        missing_references=_missing_references(cache, spec, key[0]),
        control_plane_version=version,
        control_plane_problem=problem,
        lock=_lock(cache, found, cluster),
        connection=connection,
    )


def role_of(observed: Observed, owner: ConfigOwner) -> Role:
    """What the machine becomes."""
    if not owner.is_control_plane:
        return Role.WORKER
    return Role.CONTROL_PLANE if observed.initialized else Role.INIT


def endpoint_of(cluster: Cluster) -> str:
    """`host:port` of a Cluster's control plane; empty while it is not known."""
    endpoint = cluster.spec.control_plane_endpoint
    if not endpoint.host or not endpoint.port:
        return ""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def facts_of(cluster: Cluster, version: str) -> ClusterFacts:
    """What kubeadm is told of a Cluster."""
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
    wanted = [place.purpose for place in places(spec.get("clusterConfiguration", {}))]
    if role is Role.WORKER:
        wanted = [Purpose.CLUSTER_CA]
    namespace, name = cluster.key
    return tuple(
        purpose
        for purpose in wanted
        if cache.get(SECRET_METADATA, namespace, cluster_secret_name(name, purpose)) is None
    )


def _missing_references(cache: Cache, spec: Spec, namespace: str) -> tuple[str, ...]:
    names = files.secret_names(spec)
    there = frozenset(name for name in names if cache.get(SECRET_METADATA, namespace, name) is not None)
    return tuple(files.missing_references(spec, there))


def _control_plane_version(cache: Cache, spec: Spec, cluster: Cluster) -> tuple[str, str]:
    """Version and, if it cannot be told, why."""
    reference = cluster.spec.control_plane_ref
    if not files.has_templates(spec) or not reference.name:
        return "", ""
    found = read_reference(cache, reference, cluster.metadata.namespace)
    return (ControlPlane.of(found).version, "") if found.exists else ("", str(found))


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
    return None if query is None else cache.fact(query, lifetime.look_every_s)


def token_query(config: KubeadmConfig, cluster: Cluster) -> TokenOf | None:
    """The question how the spec's token stands; None where the spec has none that can be asked for."""
    try:
        return TokenOf(ClusterKey.of(cluster), token_id(config.spec.join_configuration.discovery.bootstrap_token.token))
    except TokenError:
        return None


def _failure(cache: Cache, owner: ConfigOwner, namespace: str) -> str:
    if not owner.infrastructure.name:
        return ""
    found = read_reference(cache, owner.infrastructure, namespace)
    return reported_failure(found.obj) if found.obj is not None else ""
