"""The resources that ClusterResourceSets name, and the queries about their content.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from ironbell.api.addons import CLUSTER_RESOURCE_SET
from ironbell.api.addons.clusterresourceset import ClusterResourceSet, ResourceRef
from ironbell.api.addons.clusterresourcesetbinding import ClusterResourceSetBinding, ResourceBinding
from ironbell.api.core import CONFIG_MAP
from ironbell.api.core.secret import SECRET_METADATA, SecretMetadata
from ironbell.api.meta import Resource
from ironbell.base.labels import SelectorError
from ironbell.contract.clusters.paused import has_paused_annotation
from ironbell.contract.selectors import matches
from ironbell.kube.decision import AnyKind, Query
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index

SECRET_TYPE: Final = "addons.cluster.x-k8s.io/resource-set"  # noqa: S105 - a type, not a secret
RECONCILE: Final = "Reconcile"

SETS_OF_NAMESPACE: Final = Index(CLUSTER_RESOURCE_SET, "capi-namespace", lambda s: [s.metadata.namespace])


@dataclass(frozen=True, slots=True)
class ContentHash(Query[str]):
    """The hash of a ConfigMap's or Secret's values, in one version of it."""

    subject: ClassVar[str] = "the content of the resource"

    kind: str
    namespace: str
    name: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Source:
    """A resource that a ClusterResourceSet names."""

    set_name: str
    strategy: str
    reference: ResourceRef
    obj: Resource | None = None
    hash: str = ""
    """Hash of its current content; empty while it is unknown."""

    @property
    def kind(self) -> AnyKind:
        return SECRET_METADATA if self.reference.kind == "Secret" else CONFIG_MAP

    @property
    def has_wrong_type(self) -> bool:
        """Return whether it is a Secret of another type."""
        return isinstance(self.obj, SecretMetadata) and self.obj.type != SECRET_TYPE

    @property
    def query(self) -> ContentHash | None:
        """The query for its hash; None if the hash is not needed, or cannot be known."""
        if self.obj is None or self.strategy != RECONCILE or self.has_wrong_type:
            return None
        meta = self.obj.metadata
        return ContentHash(self.reference.kind, meta.namespace, meta.name, meta.resource_version)


def selects(resource_set: ClusterResourceSet, obj: Resource) -> bool:
    """Return whether a ClusterResourceSet selects this Cluster; an empty or invalid selector selects none."""
    selector = resource_set.spec.cluster_selector
    try:
        return bool(selector.match_labels or selector.match_expressions) and matches(selector, obj.metadata.labels)
    except SelectorError:
        return False


def is_active(resource_set: ClusterResourceSet) -> bool:
    """Return whether its resources are applied."""
    return not is_deleting(resource_set) and not has_paused_annotation(resource_set)


def sources_of(cache: Cache, resource_set: ClusterResourceSet) -> tuple[Source, ...]:
    """The resources of a ClusterResourceSet, with the known facts about each."""
    return tuple(_source(cache, resource_set, reference) for reference in resource_set.spec.resources)


def queries_of(sources: Iterable[Source]) -> list[ContentHash]:
    """The queries for the hashes of resources, each once, in order."""
    return sorted({source.query for source in sources if source.query is not None}, key=repr)


def binding_of(
    binding: ClusterResourceSetBinding | None, set_name: str, reference: ResourceRef
) -> ResourceBinding | None:
    """The entry of a resource in a cluster's binding."""
    if binding is None:
        return None
    for entry in binding.spec.bindings:
        if entry.cluster_resource_set_name == set_name:
            for resource in entry.resources:
                if (resource.kind, resource.name) == (reference.kind, reference.name):
                    return resource
    return None


def needs_apply(source: Source, held: ResourceBinding | None) -> bool:
    """Return whether a resource is to be applied: once, or whenever its content differs from the applied content."""
    if held is None or not held.applied:
        return True
    return source.strategy == RECONCILE and bool(source.hash) and held.hash != source.hash


def _source(cache: Cache, resource_set: ClusterResourceSet, reference: ResourceRef) -> Source:
    source = Source(resource_set.metadata.name, resource_set.spec.strategy, reference)
    obj: Resource | None = cache.get(source.kind, resource_set.metadata.namespace, reference.name)
    source = Source(resource_set.metadata.name, resource_set.spec.strategy, reference, obj)
    query = source.query
    # the content of one version of an object never changes
    fact = cache.fact(query, None) if query is not None else None
    known = fact.value if fact is not None and fact.value is not None else ""
    return Source(resource_set.metadata.name, resource_set.spec.strategy, reference, obj, known)
