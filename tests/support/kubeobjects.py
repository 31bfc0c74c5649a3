"""Small objects that tests of a Kubernetes API make, and the parts of answers that they look at."""

from __future__ import annotations

from typing import Any

from support.kubeapi import Answer


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
