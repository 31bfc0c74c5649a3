"""The controller that applies the resources of ClusterResourceSets in one cluster, and keeps the binding.

Its keys are Clusters, not ClusterResourceSets: a set for a thousand clusters is a thousand small decisions, and nothing
else writes a cluster's binding.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset/clusterresourceset_controller.go
(ApplyClusterResourceSet), core/reconcilers/clusterresourcesetbinding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ironbell.api.addons import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.addons.clusterresourceset import ClusterResourceSet
from ironbell.api.addons.clusterresourcesetbinding import ClusterResourceSetBinding
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core import CONFIG_MAP
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.meta import to_builtin
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.owners import is_owned_by, owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.clusterresourceset.applier import (
    APPLY,
    CONTROLLER,
    TIMEOUT_S,
    ApplyArguments,
    Pending,
    encoded,
)
from ironbell.controllers.capi.clusterresourceset.sources import (
    SETS_OF_NAMESPACE,
    Source,
    binding_of,
    is_active,
    needs_apply,
    queries_of,
    selects,
    sources_of,
)
from ironbell.kube.decision import Decision, Effect, Fact, Key, MergePatch, Need, create, delete, do
from ironbell.kube.draft import Draft
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import Predicate, any_of, changed, desired_state_changed
from ironbell.kube.reconciler import Cache, Changes, Declaration, Watch, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, Connection, ConnectionState

AGAIN: Final = timedelta(seconds=15)
"""Time after which a failed resource is applied again: a kind may have been defined meanwhile."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A Cluster with the ClusterResourceSets that select it."""

    key: Key
    cluster: Cluster | None
    binding: ClusterResourceSetBinding | None = None
    sets: tuple[ClusterResourceSet, ...] = ()
    sources: tuple[Source, ...] = ()
    connection: Fact[ConnectionState] | None = None


def _set_fields(resource_set: ClusterResourceSet) -> tuple[Any, ...]:
    """The fields of a ClusterResourceSet that affect what is applied."""
    return resource_set.spec, resource_set.metadata.annotations, is_deleting(resource_set)


def cluster_of(binding: ClusterResourceSetBinding, _cache: Cache) -> Iterable[Key]:
    """The Cluster of a binding, which has the same name."""
    return [binding.key]


_CLUSTER_CHANGED: Final[Predicate[Cluster]] = any_of(
    desired_state_changed, changed(lambda cluster: cluster.status.initialization)
)


class ResourceApplyingReconciler:
    """Applies the resources of ClusterResourceSets in each cluster."""

    name = CONTROLLER
    declaration = Declaration(
        CLUSTER,
        watches=(
            Watch(CLUSTER_RESOURCE_SET_BINDING, cluster_of),
            read_by(CLUSTER_RESOURCE_SET, SETS_OF_NAMESPACE, relevant=changed(_set_fields)),
            read_by(CONFIG_MAP),
            read_by(SECRET_METADATA),
        ),
        indexes=(SETS_OF_NAMESPACE,),
        own=Changes(relevant=_CLUSTER_CHANGED),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        cluster = cache.get(CLUSTER, *key)
        binding = cache.get(CLUSTER_RESOURCE_SET_BINDING, *key)
        if cluster is None or is_deleting(cluster):
            return Observed(key, cluster, binding) if binding is not None else None
        candidates = cache.indexed(SETS_OF_NAMESPACE, key[0])
        sets = tuple(
            resource_set for resource_set in candidates if is_active(resource_set) and selects(resource_set, cluster)
        )
        if not sets:
            return None
        sources = tuple(source for resource_set in sets for source in sources_of(cache, resource_set))
        return Observed(key, cluster, binding, sets, sources, cache.fact(Connection(ClusterKey.of(cluster)), PUSHED_S))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        cluster, binding = observed.cluster, observed.binding
        if cluster is None or is_deleting(cluster) or (binding is not None and outlived(binding, cluster)):
            is_obsolete = binding is not None and not is_deleting(binding)
            return do(delete(CLUSTER_RESOURCE_SET_BINDING, binding) if binding is not None and is_obsolete else None)
        draft = Draft(CLUSTER, cluster, now)
        draft.need(Need(Connection(ClusterKey.of(cluster)), PUSHED_S))
        draft.need(*(Need(query, 24 * PUSHED_S) for query in queries_of(observed.sources)))
        state = observed.connection.value if observed.connection is not None else None
        if not cluster.status.initialization.control_plane_initialized or state is None or not state.connected:
            draft.wait("ClusterNotReachable", "the cluster has no reachable API server yet")
        elif binding is None:
            draft.owned.append(create(CLUSTER_RESOURCE_SET_BINDING, _new_binding(observed)))
        elif changed := _owned(observed, binding):
            draft.owned.append(changed)
        else:
            _apply(draft, observed, binding)
        return draft.decision()


def _owned(observed: Observed, binding: ClusterResourceSetBinding) -> MergePatch | None:
    owners = binding.metadata.owner_references
    for resource_set in observed.sets:
        owners = with_owner(owners, owner_reference(CLUSTER_RESOURCE_SET, resource_set))
    return owners_patch(CLUSTER_RESOURCE_SET_BINDING, binding, owners)


def outlived(binding: ClusterResourceSetBinding, cluster: Cluster) -> bool:
    """Return whether a binding belongs to an earlier Cluster of the same name; only the name connects the two."""
    written, created = binding.metadata.creation_timestamp, cluster.metadata.creation_timestamp
    return written is not None and created is not None and parse_rfc3339(written) < parse_rfc3339(created)


def _new_binding(observed: Observed) -> dict[str, Any]:
    namespace, name = observed.key
    owners = [to_builtin(owner_reference(CLUSTER_RESOURCE_SET, resource_set)) for resource_set in observed.sets]
    metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"clusterName": name}}


def _apply(draft: Draft[Cluster], observed: Observed, binding: ClusterResourceSetBinding) -> None:
    pending: list[Pending] = []
    later: list[timedelta] = []
    missing: list[str] = []
    for source in observed.sources:
        if source.obj is None or source.has_wrong_type:
            missing.append(f"{source.reference.kind} {source.reference.name}")
            continue
        held = binding_of(binding, source.set_name, source.reference)
        if not needs_apply(source, held):
            continue
        failed_at = held.last_applied_time if held is not None and not held.applied else None
        left = parse_rfc3339(failed_at) + AGAIN - draft.now if failed_at else timedelta(0)
        # A failed resource is not applied again at once, unless its content has changed.
        is_other = source.hash != "" and held is not None and held.hash not in ("", source.hash)
        if left > timedelta(0) and not is_other:
            later.append(left)
            continue
        pending.append(Pending(source.set_name, source.strategy, source.reference.kind, source.reference.name))
    if pending:
        key, version = ClusterKey.of(draft.obj), binding.metadata.resource_version
        arguments = ApplyArguments(key, version, encoded(binding.spec.bindings), tuple(pending))
        draft.last.append(Effect(APPLY, arguments, timeout_s=TIMEOUT_S))
        return
    if missing:
        draft.wait("ResourceMissing", f"missing, or Secret of a wrong type: {', '.join(missing)}")
    if later:
        draft.wait("ResourcesNotApplied", "resources that could not be applied will be retried")
        draft.requeue_after(min(later).total_seconds() + 0.1)


def is_bound(binding: ClusterResourceSetBinding, resource_set: ClusterResourceSet) -> bool:
    """Return whether a binding records anything about a ClusterResourceSet."""
    entries = binding.spec.bindings
    named = any(entry.cluster_resource_set_name == resource_set.metadata.name for entry in entries)
    return named or is_owned_by(binding, CLUSTER_RESOURCE_SET, resource_set)
