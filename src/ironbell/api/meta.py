"""What every Kubernetes object has: metadata, owner references, conditions.

Structs are frozen and drop fields they do not know when they are decoded: they are for reading and deciding.
Writes are patches over the fields that we own, so that nothing unknown is lost (docs/architecture.md, "API types").

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"):
    """Base of every API struct: frozen, camelCase on the wire, zero values left out."""


class OwnerReference(Model, frozen=True):
    """Who an object belongs to; the garbage collector deletes it when no owner is left."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model, frozen=True):
    """Metadata of one object, without managedFields (which informers do not keep)."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Condition(Model, frozen=True):
    """`metav1.Condition`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class Resource(Model, frozen=True):
    """Base of every kind."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name); the namespace is empty for cluster-scoped kinds."""
        return (self.metadata.namespace, self.metadata.name)


def to_builtin(value: Any) -> Any:
    """A struct as plain dicts and lists, as it goes over the wire."""
    return msgspec.to_builtins(value)
