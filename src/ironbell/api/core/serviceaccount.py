"""ServiceAccount: an identity for programs.

Source: kubernetes/api: core/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.core.event import ObjectReference
from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class LocalObjectReference(Model, frozen=True):
    """An object of the same namespace by name."""

    name: str = ""


class ServiceAccount(Resource, frozen=True):
    """An identity for programs."""

    secrets: Annotated[
        list[ObjectReference], Schema("Secrets it may use.", list_type="map", list_map_keys=("name",))
    ] = []
    image_pull_secrets: Annotated[list[LocalObjectReference], Schema("Secrets to fetch images with.")] = []
    automount_service_account_token: Annotated[bool | None, Schema("Whether pods get its token.")] = None


SERVICE_ACCOUNT: Kind[ServiceAccount] = Kind(
    group="",
    version="v1",
    kind="ServiceAccount",
    plural="serviceaccounts",
    model=ServiceAccount,
    short_names=("sa",),
    columns=(Column("Age", ".metadata.creationTimestamp", type="date"),),
    description="An identity for programs.",
)
