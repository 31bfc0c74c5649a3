"""The input of a decision about a Cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import ConditionGate
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.meta import Resource
from ironbell.api.unstructured import Unstructured
from ironbell.contract.clusters.external import External, read_reference
from ironbell.contract.clusters.machine_causes import POWERED_ON
from ironbell.contract.clusters.references import NoSuchKindError, resolve
from ironbell.contract.clusters.secrets import Purpose, secret_name
from ironbell.contract.templates import SUFFIX
from ironbell.controllers.capi.cluster import endpoint
from ironbell.controllers.capi.cluster.descendants import Descendants, descendants
from ironbell.controllers.capi.indexes import cluster_keys
from ironbell.kube.decision import AnyKind, Fact, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import actionable
from ironbell.kube.reconciler import Cache, Changes, Index, Unsynced
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, ConnectionState


def _template_keys(definition: KindDefinition) -> list[str]:
    return ["template"] if definition.spec.names.kind.endswith(SUFFIX) else []


ROLL_UP_S: Final = 1.0
"""Time for gathering changes of sets and Machines before they are counted."""
_REPORTS: Final = frozenset({"control_plane", "workers", "phase", "observed_generation"})
_CONTROL_PLANE_REPORTS: Final = frozenset(
    {
        *("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas", "updatedReplicas"),
        *("unavailableReplicas", "selector", "observedGeneration"),
    }
)
OWN: Final = Changes(urgent=actionable(reports=_REPORTS), delay_s=ROLL_UP_S, reporting=True)
PROVIDERS: Final = Changes(urgent=actionable(reports=_CONTROL_PLANE_REPORTS), delay_s=ROLL_UP_S, reporting=True)
"""A control plane reports much of its progress, which is counted here."""
TEMPLATE_KINDS: Final[Index[KindDefinition]] = Index(KIND_DEFINITION, "capi-template-kind", _template_keys)


@dataclass(frozen=True, slots=True)
class Observed:
    """A Cluster with everything that it refers to, and everything that belongs to it."""

    cluster: Cluster
    descendants: Descendants
    infrastructure: External | None = None
    control_plane: External | None = None
    endpoint_owner: Cluster | None = None
    """The other Cluster that owns its endpoint."""
    connection: Fact[ConnectionState] | None = None
    gates: tuple[ConditionGate, ...] = ()
    """Further conditions that its availability depends on."""
    has_kubeconfig: bool = False
    has_authority: bool = False
    templates: tuple[tuple[AnyKind, Unstructured], ...] = ()
    """Templates that the Cluster owns; only looked up while it is being deleted."""
    unlisted_templates: str = ""
    """A kind of templates that is not known yet, with the problem; empty unless it is being deleted."""

    @property
    def has_topology(self) -> bool:
        """Return whether a ClusterClass creates its objects."""
        return bool(self.cluster.spec.topology.class_ref.name)


def is_first_node(old: Machine | None, new: Machine | None) -> bool:
    """Return whether a control plane Machine has just got its Node, which may initialize the cluster."""
    if new is None or LABEL_CONTROL_PLANE not in new.metadata.labels:
        return False
    return bool(new.status.node_ref.name) and (old is None or not old.status.node_ref.name)


def of_member(obj: Resource, _cache: Cache) -> Iterable[Key]:
    """The Cluster that an object's label names."""
    return [(obj.metadata.namespace, value.partition("/")[2]) for value in cluster_keys(obj)]


def counted(machine: Machine) -> tuple[Any, ...]:
    """The fields of a Machine that its Cluster counts or reports."""
    types = ("Ready", "Available", "UpToDate", "OwnerRemediated", "HealthCheckSucceeded", POWERED_ON)
    held = [(c.type, c.status, c.message) for c in machine.status.conditions if c.type in types]
    info = machine.status.node_info
    return (sorted(held), machine.spec.version, info.kubelet_version if info is not None else "", is_deleting(machine))


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the input of the decision."""
    cluster = cache.get(CLUSTER, *key)
    if cluster is None:
        return None
    namespace, spec = key[0], cluster.spec
    plane, infrastructure = spec.control_plane_ref, spec.infrastructure_ref
    alone = not plane.name
    kubeconfig, authority = secret_name(key[1], Purpose.KUBECONFIG), secret_name(key[1], Purpose.CLUSTER_CA)
    templates, unlisted = _templates(cache, cluster) if is_deleting(cluster) else ((), "")
    infrastructure_object = read_reference(cache, infrastructure, namespace) if infrastructure.name else None
    plane_object = read_reference(cache, plane, namespace) if plane.name else None
    return Observed(
        cluster,
        descendants(cache, cluster),
        infrastructure_object,
        plane_object,
        endpoint.owner(cache, cluster, infrastructure_object, plane_object),
        cache.fact(Connection(ClusterKey.of(cluster)), PUSHED_S),
        _gates(cache, cluster),
        has_kubeconfig=alone and cache.get(SECRET_METADATA, namespace, kubeconfig) is not None,
        has_authority=alone and cache.get(SECRET_METADATA, namespace, authority) is not None,
        templates=templates,
        unlisted_templates=unlisted,
    )


def _gates(cache: Cache, cluster: Cluster) -> tuple[ConditionGate, ...]:
    """The Cluster's own gates, or those of its class."""
    own, reference = cluster.spec.availability_gates, cluster.spec.topology.class_ref
    if own or not reference.name:
        return tuple(own)
    cluster_class = cache.get(CLUSTER_CLASS, reference.namespace or cluster.metadata.namespace, reference.name)
    return tuple(cluster_class.spec.availability_gates) if cluster_class is not None else ()


def _templates(cache: Cache, cluster: Cluster) -> tuple[tuple[tuple[AnyKind, Unstructured], ...], str]:
    """The templates that a Cluster owns, of any provider."""
    templates: list[tuple[AnyKind, Unstructured]] = []
    definitions: Sequence[KindDefinition] = cache.indexed(TEMPLATE_KINDS, "template")
    for definition in definitions:
        try:
            kind = resolve(cache, definition.spec.group, definition.spec.names.kind).kind
        except NoSuchKindError:
            continue
        objects = cache.dynamic_owned(kind, cluster.metadata.uid)
        if isinstance(objects, Unsynced):
            return (), f"{kind.kind} cannot be read yet" + (f": {objects.problem}" if objects.problem else "")
        templates += [(kind, obj) for obj in objects]
    return tuple(templates), ""
