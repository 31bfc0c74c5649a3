"""Small objects that tests of a Kubernetes API make, and the parts of answers that they look at."""

from __future__ import annotations

from typing import Any

from support.api.kubeapi import Answer

_STRING = {"type": "string"}
_PART = {
    "type": "object", "required": ["name"],
    "properties": {"name": _STRING, "count": {"type": "integer"}, "note": _STRING},
}  # fmt: skip
_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 3},
        "port": {"x-kubernetes-int-or-string": True},
        "replicas": {"type": "integer"},
        "parts": {
            "type": "array", "items": _PART,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "plain": {"type": "array", "items": _STRING},
        "labels": {"type": "object", "additionalProperties": _STRING},
        "fixed": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _STRING, "b": _STRING}},
        "maybe": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
_STATUS = {"type": "object", "properties": {"phase": _STRING, "replicas": {"type": "integer"}}}
THINGS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.conf.example.org"},
    "spec": {
        "group": "conf.example.org",
        "scope": "Namespaced",
        "names": {
            "plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"], "categories": ["all"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
            }
        ],
    },
}  # fmt: skip
"""A custom resource with every kind of list and map."""


def thing(name: str = "one", meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "conf.example.org/v1", "kind": "Thing", "metadata": {"name": name, **(meta or {})}, **fields,
    }  # fmt: skip


def config_map(name: str = "one", meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **(meta or {})}, **fields}


def secret(name: str = "one", meta: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **(meta or {})}, **fields}


def names(answer: Answer) -> list[str]:
    """The names in a list."""
    return [item["metadata"]["name"] for item in answer.json["items"]]


def refusal(answer: Answer) -> tuple[int, str, str]:
    """Status, reason and message of a refusal."""
    assert answer.json["kind"] == "Status", answer.body
    assert answer.json["status"] == "Failure"
    assert answer.json["code"] == answer.status
    return answer.status, answer.reason, answer.message


def managers(value: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Who owns what: manager, operation, subresource, fields."""
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""), entry["fieldsV1"])
        for entry in value["metadata"].get("managedFields", [])
    ]


def owned(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields of each manager, for objects on which each has one entry."""
    found = managers(value)
    assert len({name for name, *_ in found}) == len(found), found
    return {name: fields for name, _, _, fields in found}
