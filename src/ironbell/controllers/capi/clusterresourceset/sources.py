"""What ClusterResourceSets name, and what is asked about it.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset.
"""

from __future__ import annotations

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

SECRET_TYPE: Final = "addons.cluster.x-k8s.io/resource-set"  # noqa: S105 - a type, no secret
RECONCILE: Final = "Reconcile"

SETS_OF_NAMESPACE: Final = Index(CLUSTER_RESOURCE_SET, "capi-namespace", lambda one: [one.metadata.namespace])


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
    """One resource that a ClusterResourceSet names."""

    set_name: str
    strategy: str
    reference: ResourceRef
    obj: Resource | None = None
    hash: str = ""
    """Of its content now; empty while that is not known."""

    @property
    def kind(self) -> AnyKind:
        return SECRET_METADATA if self.reference.kind == "Secret" else CONFIG_MAP

    @property
    def has_wrong_type(self) -> bool:
        """Whether it is a Secret that is for something else."""
        return isinstance(self.obj, SecretMetadata) and self.obj.type != SECRET_TYPE

    @property
    def query(self) -> ContentHash | None:
        """What is to be asked to know its hash; None where it is not needed, or cannot be known."""
        if self.obj is None or self.strategy != RECONCILE or self.has_wrong_type:
            return None
        meta = self.obj.metadata
        return ContentHash(self.reference.kind, meta.namespace, meta.name, meta.resource_version)


def selects(one: ClusterResourceSet, obj: Resource) -> bool:
    """Whether a ClusterResourceSet is for this Cluster; one whose selector is empty or unusable is for none."""
    selector = one.spec.cluster_selector
    try:
        return bool(selector.match_labels or selector.match_expressions) and matches(selector, obj.metadata.labels)
    except SelectorError:
        return False


def is_active(one: ClusterResourceSet) -> bool:
    """Whether anything is applied for it."""
    return not is_deleting(one) and not has_paused_annotation(one)


def sources_of(cache: Cache, one: ClusterResourceSet) -> tuple[Source, ...]:
    """The resources of a ClusterResourceSet, with what is known of each."""
    return tuple(_source(cache, one, reference) for reference in one.spec.resources)


def binding_of(
    binding: ClusterResourceSetBinding | None, set_name: str, reference: ResourceRef
) -> ResourceBinding | None:
    """What is remembered of a resource in a cluster."""
    if binding is None:
        return None
    for entry in binding.spec.bindings:
        if entry.cluster_resource_set_name == set_name:
            for resource in entry.resources:
                if (resource.kind, resource.name) == (reference.kind, reference.name):
                    return resource
    return None


def needs_apply(source: Source, held: ResourceBinding | None) -> bool:
    """Whether a resource is to be applied: once, or whenever its content is not what was applied last."""
    if held is None or not held.applied:
        return True
    return source.strategy == RECONCILE and bool(source.hash) and held.hash != source.hash


def _source(cache: Cache, one: ClusterResourceSet, reference: ResourceRef) -> Source:
    source = Source(one.metadata.name, one.spec.strategy, reference)
    obj: Resource | None = cache.get(source.kind, one.metadata.namespace, reference.name)
    source = Source(one.metadata.name, one.spec.strategy, reference, obj)
    query = source.query
    # what one version of an object holds never changes
    fact = cache.fact(query, None) if query is not None else None
    known = fact.value if fact is not None and fact.value is not None else ""
    return Source(one.metadata.name, one.spec.strategy, reference, obj, known)
