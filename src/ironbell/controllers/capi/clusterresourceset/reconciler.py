"""The controller of ClusterResourceSets: reports their progress in their clusters, and removes them from bindings when
they are deleted.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset/clusterresourceset_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ironbell.api.addons import CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.addons.clusterresourceset import ClusterResourceSet
from ironbell.api.addons.clusterresourcesetbinding import ClusterResourceSetBinding
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import FINALIZER_CLUSTER_RESOURCE_SET
from ironbell.api.core import CONFIG_MAP
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.api.meta import Condition, to_builtin
from ironbell.base.listing import listed
from ironbell.contract.clusters.paused import PAUSED, has_paused_annotation, paused_condition
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import ERROR, WARNING, LegacyCondition, legacy_false, legacy_true
from ironbell.contract.owners import owner_reference, owners_patch, with_owner, without_owner
from ironbell.controllers.capi.clusterresourceset.applying import is_bound
from ironbell.controllers.capi.clusterresourceset.sources import (
    SETS_OF_NAMESPACE,
    Source,
    binding_of,
    needs_apply,
    queries_of,
    selects,
    sources_of,
)
from ironbell.kube.decision import Action, Decision, Key, Need, delete, patch
from ironbell.kube.finalizers import add_finalizer, is_deleting, remove_finalizer
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch, read_by

APPLIED: Final = "ResourcesApplied"
ROLL_UP_S: Final = 1.0
_DAY_S: Final = 86400.0
CLUSTERS_OF_NAMESPACE: Final = Index(CLUSTER, "capi-namespace", lambda cluster: [cluster.metadata.namespace])
BINDINGS_OF_NAMESPACE: Final = Index(
    CLUSTER_RESOURCE_SET_BINDING, "capi-namespace", lambda binding: [binding.metadata.namespace]
)


@dataclass(frozen=True, slots=True)
class Observed:
    """A ClusterResourceSet with its resources, the clusters that it selects, and the bindings that record it."""

    resource_set: ClusterResourceSet
    sources: tuple[Source, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    bindings: tuple[ClusterResourceSetBinding, ...] = ()


def _sets_of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    namespace = cluster.metadata.namespace
    return [
        resource_set.key
        for resource_set in cache.indexed(SETS_OF_NAMESPACE, namespace)
        if selects(resource_set, cluster)
    ]


def _sets_of_binding(binding: ClusterResourceSetBinding, _cache: Cache) -> Iterable[Key]:
    names = {entry.cluster_resource_set_name for entry in binding.spec.bindings}
    names |= {owner.name for owner in binding.metadata.owner_references if owner.kind == CLUSTER_RESOURCE_SET.kind}
    return [(binding.metadata.namespace, name) for name in names]


class ClusterResourceSetReconciler:
    """Reports the status of ClusterResourceSets."""

    name = "capi-clusterresourceset"
    declaration = Declaration(
        CLUSTER_RESOURCE_SET,
        watches=(
            Watch(
                CLUSTER,
                _sets_of_cluster,
                changed(lambda cluster: (cluster.metadata.labels, is_deleting(cluster))),
                delay_s=ROLL_UP_S,
            ),
            Watch(CLUSTER_RESOURCE_SET_BINDING, _sets_of_binding, delay_s=ROLL_UP_S),
            read_by(CONFIG_MAP),
            read_by(SECRET_METADATA),
        ),
        indexes=(SETS_OF_NAMESPACE, CLUSTERS_OF_NAMESPACE, BINDINGS_OF_NAMESPACE),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        resource_set = cache.get(CLUSTER_RESOURCE_SET, *key)
        if resource_set is None:
            return None
        bindings = tuple(b for b in cache.indexed(BINDINGS_OF_NAMESPACE, key[0]) if is_bound(b, resource_set))
        if is_deleting(resource_set):
            return Observed(resource_set, bindings=bindings)
        clusters = cache.indexed(CLUSTERS_OF_NAMESPACE, key[0])
        selected = tuple(cluster for cluster in clusters if not is_deleting(cluster) and selects(resource_set, cluster))
        return Observed(resource_set, sources_of(cache, resource_set), selected, bindings)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConditionsDraft(CLUSTER_RESOURCE_SET, observed.resource_set, now)
        pause = paused_condition(CLUSTER_RESOURCE_SET.kind, draft.obj)
        if added := add_finalizer(CLUSTER_RESOURCE_SET, draft.obj, FINALIZER_CLUSTER_RESOURCE_SET):
            draft.first.append(added)
        elif has_paused_annotation(draft.obj):
            draft.put(pause)
            draft.wait(PAUSED, pause.message)
        elif draft.is_deleting:
            last = remove_finalizer(CLUSTER_RESOURCE_SET, draft.obj, FINALIZER_CLUSTER_RESOURCE_SET)
            draft.last += [*_unbound(observed), last]
        else:
            condition, older = _result(observed)
            draft.put(pause, condition)
            draft.put_legacy(older)
            draft.observe_generation()
            draft.last += _claimed(observed)
            draft.need(*(Need(query, _DAY_S) for query in queries_of(observed.sources)))
            if condition.status != "True":
                draft.wait(condition.reason, condition.message)
        return draft.decision()


def _claimed(observed: Observed) -> Iterator[Action | None]:
    """Set the ClusterResourceSet as an owner of its resources, so that they move along with it."""
    reference = owner_reference(CLUSTER_RESOURCE_SET, observed.resource_set)
    for source in observed.sources:
        if source.obj is not None and not source.has_wrong_type:
            yield owners_patch(source.kind, source.obj, with_owner(source.obj.metadata.owner_references, reference))


def _unbound(observed: Observed) -> Iterator[Action]:
    """Remove the ClusterResourceSet from every binding, and delete empty bindings. Applied objects stay."""
    name = observed.resource_set.metadata.name
    for binding in observed.bindings:
        kept = [entry for entry in binding.spec.bindings if entry.cluster_resource_set_name != name]
        owners = without_owner(binding.metadata.owner_references, CLUSTER_RESOURCE_SET, name)
        if not kept:
            yield delete(CLUSTER_RESOURCE_SET_BINDING, binding)
            continue
        body = {
            "metadata": {"ownerReferences": to_builtin(owners) or None},
            "spec": {"bindings": to_builtin(kept)},
        }
        yield patch(CLUSTER_RESOURCE_SET_BINDING, binding, body, locked=True)


def _result(observed: Observed) -> tuple[Condition, LegacyCondition]:
    """The condition for whether everything is applied everywhere, in both forms."""
    wrong = [source.reference.name for source in observed.sources if source.has_wrong_type]
    if wrong:
        return _not_applied("WrongSecretType", f"Secret type of resource {wrong[0]} is not supported")
    absent = [f"{s.reference.kind} {s.reference.name}" for s in observed.sources if s.obj is None]
    if absent:
        message = f"{', '.join(absent)} not found"
        return _not_applied("InternalError", message, older="RetrievingResourceFailed")
    bound = {binding.metadata.name: binding for binding in observed.bindings}
    failed, unreached = [], []
    for cluster in observed.clusters:
        binding = bound.get(cluster.metadata.name)
        held = [(source, binding_of(binding, source.set_name, source.reference)) for source in observed.sources]
        if any(entry is not None and not entry.applied for _, entry in held):
            failed.append(cluster.metadata.name)
        elif any(needs_apply(source, entry) for source, entry in held):
            unreached.append(cluster.metadata.name)
    if failed:
        message = f"Failed to apply ClusterResourceSet resources to {_clusters(failed)}"
        return _not_applied("NotApplied", message, older="ApplyFailed")
    if unreached:
        message = f"ClusterResourceSet resources are not applied to {_clusters(unreached)} yet"
        return _not_applied("NotApplied", message, older="RemoteClusterClientFailed", severity=ERROR)
    return Condition(type=APPLIED, status="True", reason="Applied", message=""), legacy_true(APPLIED)


def _clusters(names: Sequence[str]) -> str:
    return f"Cluster{'' if len(names) == 1 else 's'} {listed(sorted(names))}"


def _not_applied(
    reason: str, message: str, *, older: str = "", severity: str = WARNING
) -> tuple[Condition, LegacyCondition]:
    condition = Condition(type=APPLIED, status="False", reason=reason, message=message)
    return condition, legacy_false(APPLIED, older or reason, severity, message)
