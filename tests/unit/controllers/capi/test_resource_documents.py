"""Manifests in ConfigMaps and Secrets: their order, their hash, and invalid manifests."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ironbell.controllers.capi.clusterresourceset.documents import DocumentsError, documents, hash_of, values_of


def manifest(kind: str, name: str = "x") -> str:
    return f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


def test_dependencies_come_first_and_other_objects_keep_their_order() -> None:
    text = "---\n".join(manifest(kind) for kind in ("Deployment", "ConfigMap", "Service", "Namespace"))

    result = documents([text.encode(), manifest("Namespace", "later").encode()])

    assert [(o["kind"], o["metadata"]["name"]) for o in result] == [
        ("Namespace", "x"),
        ("ConfigMap", "x"),
        ("Deployment", "x"),
        ("Service", "x"),
        ("Namespace", "later"),
    ]


def test_a_short_document_and_a_json_list_are_read() -> None:
    assert documents([b'[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]'])[0]["kind"] == "Pod"
    assert documents([b"# nothing"]) == []


def test_values_come_in_the_order_of_their_keys() -> None:
    secret = {"data": {"b": base64.b64encode(b"2").decode(), "a": base64.b64encode(b"1").decode()}}

    assert values_of("Secret", secret) == [b"1", b"2"]
    assert values_of("ConfigMap", {"data": {"b": "2", "a": "1"}}) == [b"1", b"2"]
    assert hash_of([b"1", b"2"]) == "sha256:6b51d431df5d7f141cbececcf79edf3dd861c3b4069f0b11661a3eefacbba918"


@pytest.mark.parametrize(
    ("kind", "resource"), [("ConfigMap", {}), ("Secret", {"data": {"a": "not base 64"}}), ("Secret", {"data": {}})]
)
def test_a_resource_without_readable_data(kind: str, resource: dict[str, Any]) -> None:
    with pytest.raises(DocumentsError):
        values_of(kind, resource)


@pytest.mark.parametrize("text", ["{hunter2", "kind: Pod", "- - hunter2", "hunter2", "\t: hunter2"])
def test_invalid_manifests_are_rejected_without_a_quote(text: str) -> None:
    with pytest.raises(DocumentsError) as caught:
        documents([text.encode()])
    assert "hunter2" not in str(caught.value)
