"""A `Kind` to its CustomResourceDefinition.

Source: apiextensions.k8s.io/v1, CustomResourceDefinition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ironbell.api.crd.older_versions import older_versions
from ironbell.api.crd.schema import root_schema
from ironbell.api.kind import Column, Kind, Scale


def crd_document(kind: Kind[Any]) -> dict[str, Any]:
    """The definition as plain data: all served versions, of which the kind's own is the stored one."""
    metadata: dict[str, Any] = {"name": f"{kind.plural}.{kind.group}"}
    if kind.crd_labels:
        metadata["labels"] = dict(kind.crd_labels)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [*older_versions(kind), _version(kind)],
        },
    }


def crd_yaml(kinds: Iterable[Kind[Any]]) -> str:
    """The definitions as one YAML stream, fit for `kubectl apply`."""
    from ironbell.codec import goyaml  # the API process makes documents at its start, and never text

    return "".join(f"---\n{goyaml.dump(crd_document(kind))}" for kind in kinds)


def _names(kind: Kind[Any]) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _version(kind: Kind[Any]) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root_schema(kind.model, description=kind.description)},
    }
    subresources: dict[str, Any] = {}
    if kind.has_status:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = _scale(kind.scale)
    if subresources:
        version["subresources"] = subresources
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    if kind.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    return version


def _scale(scale: Scale) -> dict[str, str]:
    entry = {"specReplicasPath": scale.spec_replicas_path, "statusReplicasPath": scale.status_replicas_path}
    if scale.label_selector_path:
        entry["labelSelectorPath"] = scale.label_selector_path
    return entry


def _column(column: Column) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        entry["priority"] = column.priority
    if column.format:
        entry["format"] = column.format
    if column.description:
        entry["description"] = column.description
    return entry
