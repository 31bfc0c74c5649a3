"""Objects made from templates of providers.

The kind of a clone is the template's without the suffix `Template`, in the version that the template was read in. The
clone names the template that it comes from.

Source: kubernetes-sigs/cluster-api: controllers/external/util.go (GenerateTemplate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ironbell.api.cluster.names import (
    ANNOTATION_CLONED_FROM_GROUP_KIND,
    ANNOTATION_CLONED_FROM_NAME,
    LABEL_CLUSTER_NAME,
)
from ironbell.api.kind import Kind
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.api.unstructured import Unstructured
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.references import NoSuchKindError, resolve
from ironbell.contract.fields import map_at, texts_at
from ironbell.kube.decision import Create, Fields, create
from ironbell.kube.reconciler import Cache

SUFFIX: Final = "Template"


def cloned_kind(cache: Cache, template: External) -> Kind[Unstructured] | None:
    """The kind of what a template makes, for `clone`; None if it has no definition."""
    try:
        return resolve(cache, template.reference.api_group, template.reference.kind.removesuffix(SUFFIX)).kind
    except NoSuchKindError:
        return None


def clone(
    template: External,
    kind: Kind[Unstructured],
    *,
    name: str,
    cluster: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: Sequence[OwnerReference] = (),
    intent: str = "",
) -> Create:
    """Create the object that a template makes.

    Args:
        template: the template, which was found.
        kind: what `cloned_kind` gave.
        name: of the new object.
        cluster: name of the Cluster it belongs to.
        labels: added to those in the template, and stronger.
        annotations: added to those in the template, and stronger.
        owners: the new object's owner references.
        intent: see `kube.decision`.

    Raises:
        ReferencedObjectMissingError: the template does not exist.
    """
    body = cloned_body(template, name=name, cluster=cluster, labels=labels, annotations=annotations, owners=owners)
    return create(kind, body, intent=intent)


def cloned_body(
    template: External,
    *,
    name: str,
    cluster: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: Sequence[OwnerReference] = (),
) -> Fields:
    """Return the object that `clone` creates, as plain data without `apiVersion` and `kind`."""
    _kind, obj = template.kind_and_object
    inner = map_at(obj.body, "spec", "template")
    about = template.reference
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": obj.metadata.namespace,
        "labels": {**texts_at(inner, "metadata", "labels"), **labels, LABEL_CLUSTER_NAME: cluster},
        "annotations": {
            **texts_at(inner, "metadata", "annotations"),
            **annotations,
            ANNOTATION_CLONED_FROM_NAME: about.name,
            ANNOTATION_CLONED_FROM_GROUP_KIND: f"{about.kind}.{about.api_group}",
        },
    }
    if owners:
        metadata["ownerReferences"] = to_builtin(list(owners))
    rest = {field: value for field, value in inner.items() if field not in ("apiVersion", "kind", "metadata")}
    return {**rest, "metadata": metadata}


def is_cloned_from(obj: Unstructured, template: External) -> bool:
    """Return whether an object was created from this template."""
    about, annotations = template.reference, obj.metadata.annotations
    return (annotations.get(ANNOTATION_CLONED_FROM_NAME), annotations.get(ANNOTATION_CLONED_FROM_GROUP_KIND)) == (
        about.name,
        f"{about.kind}.{about.api_group}",
    )
