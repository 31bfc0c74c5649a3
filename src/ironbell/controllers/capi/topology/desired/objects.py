"""Objects that are cloned from the class's templates, and copies of those templates.

Source: kubernetes-sigs/cluster-api: exp/topology/desiredstate/desired_state.go (templateToObject, templateToTemplate),
controllers/external/util.go (GenerateTemplate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import TemplateMetadata
from ironbell.api.cluster.names import (
    ANNOTATION_CLONED_FROM_GROUP_KIND,
    ANNOTATION_CLONED_FROM_NAME,
    LABEL_CLUSTER_NAME,
    LABEL_TOPOLOGY_OWNED,
)
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.contract.fields import map_at, texts_at
from ironbell.controllers.capi.topology.desired.model import Template, TopologyError
from ironbell.controllers.capi.topology.variables.builtin import LAST_APPLIED
from ironbell.kube.decision import AnyKind, Fields

_NOTHING: Final[Mapping[str, str]] = {}


def owned_labels(cluster: Cluster) -> dict[str, str]:
    """Labels of everything that a topology creates."""
    return {LABEL_CLUSTER_NAME: cluster.metadata.name, LABEL_TOPOLOGY_OWNED: ""}


def joined(stronger: TemplateMetadata, weaker: TemplateMetadata) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of the topology over those of the class."""
    return {**weaker.labels, **stronger.labels}, {**weaker.annotations, **stronger.annotations}


def clone_of(
    template: Template,
    cluster: Cluster,
    name: str,
    *,
    owner: OwnerReference,
    labels: Mapping[str, str] = _NOTHING,
    annotations: Mapping[str, str] = _NOTHING,
) -> Fields:
    """The object that is cloned from a template of the class.

    Raises:
        TopologyError: the template has no `spec.template`.
    """
    inner = map_at(template.body, "spec", "template")
    if not inner:
        raise TopologyError(f"{template.kind.kind} {template.name} has no spec.template")
    rest = {key: value for key, value in inner.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    metadata = {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": {**texts_at(inner, "metadata", "labels"), **labels, **owned_labels(cluster)},
        "annotations": {**texts_at(inner, "metadata", "annotations"), **annotations, **_origin(template)},
        "ownerReferences": to_builtin([owner]),
    }
    return _object(template.clone_kind, {**rest, "metadata": metadata})


def copy_of(
    template: Template, cluster: Cluster, name: str, *, owner: OwnerReference, labels: Mapping[str, str] = _NOTHING
) -> Fields:
    """A copy of a template for the cluster."""
    annotations = {**texts_at(template.body, "metadata", "annotations"), **_origin(template)}
    annotations.pop(LAST_APPLIED, None)
    metadata = {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": {**texts_at(template.body, "metadata", "labels"), **labels, **owned_labels(cluster)},
        "annotations": annotations,
        "ownerReferences": to_builtin([owner]),
    }
    return _object(template.kind, {"metadata": metadata, "spec": template.body.get("spec") or {}})


def reference_to(obj: Fields) -> Fields:
    """A reference as in specs of version v1beta2."""
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": obj["metadata"]["name"]}


def versioned_reference_to(obj: Fields) -> Fields:
    """A reference as in specs of the contract v1beta1."""
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
    }


def without_empty(fields: Fields) -> Fields:
    """Fields without empty values: these are left to the defaults of the object's own controller."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def first_set(*values: Any) -> Any:
    """The first value that is set."""
    return next((value for value in values if value is not None), None)


def first_list(*values: Sequence[Any]) -> list[Any]:
    """The first list that is not empty, as plain data."""
    return next((list(to_builtin(list(value))) for value in values if value), [])


def _origin(template: Template) -> dict[str, str]:
    return {ANNOTATION_CLONED_FROM_NAME: template.name, ANNOTATION_CLONED_FROM_GROUP_KIND: template.group_kind}


def _object(kind: AnyKind, fields: Fields) -> Fields:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **fields}
