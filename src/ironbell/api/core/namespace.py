"""Namespace: a scope for names, with a life of its own.

Source: kubernetes/api: core/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class NamespaceSpec(Model, frozen=True):
    """Finalizers that delay the deletion of the namespace."""

    finalizers: Annotated[list[str], Schema("Names that must be removed before the namespace is.")] = []


class NamespaceStatus(Model, frozen=True):
    """Phase of the namespace."""

    phase: Annotated[str, Schema("Active, or Terminating once it is being deleted.")] = ""
    conditions: Annotated[
        list[Condition], Schema("Conditions that delay a deletion.", list_type="map", list_map_keys=("type",))
    ] = []


class Namespace(Resource, frozen=True):
    """A scope for names."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


NAMESPACE: Kind[Namespace] = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    model=Namespace,
    namespaced=False,
    short_names=("ns",),
    columns=(Column("Status", ".status.phase"), Column("Age", ".metadata.creationTimestamp", type="date")),
    has_status=True,
    description="A scope for names.",
)
