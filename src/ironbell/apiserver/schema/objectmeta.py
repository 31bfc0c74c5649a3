"""The schema of object metadata, for patches and field ownership: its fields, and which lists are maps or sets.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go (list and patch markers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}

_STRING = {"type": "string"}
_TEXTS = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink", "creationTimestamp", "deletionTimestamp",
)  # fmt: skip
_OWNER = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _STRING),
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
    "x-kubernetes-map-type": "atomic",
}

OBJECT_META: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(_TEXTS, _STRING),
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "uid",
        },
    },
}


def with_metadata(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A resource's schema with that of its metadata put in."""
    return {**schema, "properties": {**schema.get("properties", {}), "metadata": OBJECT_META}}
