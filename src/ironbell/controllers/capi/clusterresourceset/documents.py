"""The objects in a ConfigMap or Secret that a ClusterResourceSet names, and the hash of its content.

Objects are ordered so that dependencies come first. Unlike upstream, a text of any length is recognized as a JSON list
or as YAML.

Source: kubernetes-sigs/cluster-api: core/reconcilers/clusterresourceset/clusterresourceset_helpers.go,
util/resource/resource.go.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml
from ironbell.kube.decision import Fields

_FIRST: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "LimitRange",
    "Pod",
    "ReplicaSet",
    "Endpoint",
)
_RANK: Final = {kind: number for number, kind in enumerate(_FIRST)}


class DocumentsError(IronbellError):
    """A resource's data are not manifests. The message never contains them."""

    reason = "InvalidResource"
    retry = Retry.NEVER


def values_of(kind: str, resource: Mapping[str, Any]) -> list[bytes]:
    """The values of a ConfigMap or Secret, in the order of their keys.

    Raises:
        DocumentsError: the resource has no values, or a Secret's values are not base64.
    """
    data = resource.get("data")
    if not data:
        raise DocumentsError(f"the {kind} has no data")
    texts = [str(data[key]).encode() for key in sorted(data)]
    if kind != "Secret":
        return texts
    try:
        return [base64.b64decode(text, validate=True) for text in texts]
    except binascii.Error:
        raise DocumentsError(f"the data of the {kind} are not valid base64") from None


def hash_of(values: Iterable[bytes]) -> str:
    """The hash of the applied content, which a binding records."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(value)
    return f"sha256:{digest.hexdigest()}"


def documents(values: Iterable[bytes]) -> list[Fields]:
    """The objects in the values, each value's in the order of their creation. Slow for long texts.

    Raises:
        DocumentsError: a value is neither YAML nor JSON, or contains something other than objects.
    """
    return [document for value in values for document in _ordered(_documents_of(value))]


def _documents_of(value: bytes) -> list[Fields]:
    try:
        documents = list(goyaml.load_all(value.decode()))
    except (goyaml.YamlError, UnicodeDecodeError):
        # The parser's message would quote the text, which may be a Secret's.
        raise DocumentsError("the data are neither YAML nor JSON") from None
    objects = [item for document in documents for item in (document if isinstance(document, list) else [document])]
    return [_checked(item) for item in objects if item]


def _checked(item: Any) -> Fields:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("name") or not (item.get("kind") and item.get("apiVersion")):
        raise DocumentsError("the data contain an object without apiVersion, kind or metadata.name")
    return dict(item)


def _ordered(items: list[Fields]) -> list[Fields]:
    return sorted(items, key=lambda item: _RANK.get(str(item["kind"]), len(_FIRST)))
