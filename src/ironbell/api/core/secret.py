"""Secret: small confidential data.

Source: kubernetes/api: core/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Resource

OPAQUE = "Opaque"


class Secret(Resource, frozen=True):
    """Small confidential data, such as a BMC's password."""

    type: Annotated[str, Schema("Purpose of the data; types other than Opaque require certain keys.")] = ""
    data: Annotated[dict[str, Annotated[str, Schema(format="byte")]], Schema("Values in base 64.")] = {}
    string_data: Annotated[dict[str, str], Schema("Values in plain text: only for writing, never read back.")] = {}
    immutable: Annotated[bool | None, Schema("Whether data may never change again.")] = None

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, keys={sorted(self.data)})"


SECRET: Kind[Secret] = Kind(
    group="",
    version="v1",
    kind="Secret",
    plural="secrets",
    model=Secret,
    columns=(Column("Type", ".type"), Column("Age", ".metadata.creationTimestamp", type="date")),
    description="Small confidential data.",
)


class SecretMetadata(Resource, frozen=True):
    """A Secret without its contents: what informers, observed values and logs may hold."""

    type: str = ""


SECRET_METADATA: Kind[SecretMetadata] = Kind("", "v1", "Secret", "secrets", SecretMetadata)
"""Secrets watched for their changes; who needs what is in one reads it from the API at the moment it is used."""
