"""Types that every Kubernetes object has: metadata, owner references, conditions.

Structs are frozen and drop fields they do not know when they are decoded: they are for reading and deciding.
Writes are patches over the fields that we own, so that nothing unknown is lost (docs/architecture.md, "API types").

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ironbell.api.crd.markers import Int64, Schema, Time, required


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"):
    """Base of every API struct: frozen, camelCase on the wire, zero values left out."""


class SnakeModel(Model, frozen=True, rename={}):
    """Base of the structs whose wire names are snake_case, which upstream has inside `dhcp` and `metadata`."""


class OwnerReference(Model, frozen=True):
    """Owner of an object; the garbage collector deletes the object when no owner is left."""

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
    """One observation about an object (`metav1.Condition`)."""

    schema_ = Schema(required=("lastTransitionTime",))

    type: Annotated[
        str,
        Schema(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = required(str)
    status: Annotated[str, Schema(enum=("True", "False", "Unknown"))] = required(str)
    reason: Annotated[
        str, Schema(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = required(str)
    message: Annotated[str, Schema(max_length=32768)] = required(str)
    last_transition_time: Time = None
    observed_generation: Annotated[Int64, Schema(minimum=0)] = 0


class LabelSelectorRequirement(Model, frozen=True):
    """One expression of a label selector."""

    key: str = required(str)
    operator: str = required(str)
    values: Annotated[list[str], Schema(list_type="atomic")] = []


class LabelSelector(Model, frozen=True):
    """Objects by their labels (`metav1.LabelSelector`); the empty one selects every object."""

    schema_ = Schema(map_type="atomic")

    match_labels: dict[str, str] = {}
    match_expressions: Annotated[list[LabelSelectorRequirement], Schema(list_type="atomic")] = []


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
