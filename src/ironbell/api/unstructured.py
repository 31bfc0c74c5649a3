"""Objects of kinds that are known only at run time: metadata as a struct, everything as plain data.

Which infrastructure, bootstrap or control plane provider a cluster uses is written in its objects; no struct here can
know those kinds. Their objects are read as plain data, without managedFields.

    DEV_MACHINE = dynamic_kind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine", "devmachines")

Source: kubernetes/apimachinery: pkg/apis/meta/v1/unstructured/unstructured.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from ironbell.api.kind import Kind
from ironbell.api.meta import ObjectMeta, Resource


class Unstructured(Resource, frozen=True):
    """Any object. `body` is the whole of it and is shared: readers must not change it."""

    body: dict[str, Any] = {}


@dataclass(frozen=True)
class DynamicKind(Kind[Unstructured]):
    """A kind whose objects are read as plain data."""

    def decode(self, body: bytes) -> Unstructured:
        return self.convert(msgspec.json.decode(body))

    def convert(self, data: Any) -> Unstructured:
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"an object is expected, not {type(data).__name__}")
        plain: dict[str, Any] = data
        metadata = msgspec.convert(plain.get("metadata") or {}, ObjectMeta)
        if "managedFields" in (plain.get("metadata") or {}):
            kept = {name: value for name, value in plain["metadata"].items() if name != "managedFields"}
            plain = {**plain, "metadata": kept}
        return Unstructured(
            api_version=str(plain.get("apiVersion", "")),
            kind=str(plain.get("kind", "")),
            metadata=metadata,
            body=plain,
        )


@lru_cache(maxsize=1024)
def dynamic_kind(
    group: str, version: str, kind: str, plural: str, *, namespaced: bool = True, has_status: bool = True
) -> Kind[Unstructured]:
    """The kind of that name, to be read as plain data; the same value for the same arguments."""
    return DynamicKind(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        model=Unstructured,
        namespaced=namespaced,
        has_status=has_status,
    )


def plain(obj: Resource) -> dict[str, Any]:
    """An object of any kind as plain data, as it goes over the wire."""
    if isinstance(obj, Unstructured):
        return obj.body
    fields: dict[str, Any] = msgspec.to_builtins(obj)
    return fields
