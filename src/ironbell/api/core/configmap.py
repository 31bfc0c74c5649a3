"""ConfigMap: small data that is not confidential.

Source: kubernetes/api: core/v1/types.go.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Resource


class ConfigMap(Resource, frozen=True):
    """Small data that is not confidential."""

    data: Annotated[dict[str, str], Schema("Values in UTF-8.")] = {}
    binary_data: Annotated[dict[str, Annotated[str, Schema(format="byte")]], Schema("Other values, in base 64.")] = {}
    immutable: Annotated[bool | None, Schema("Whether data may never change again.")] = None


CONFIG_MAP: Kind[ConfigMap] = Kind(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    model=ConfigMap,
    short_names=("cm",),
    columns=(Column("Age", ".metadata.creationTimestamp", type="date"),),
    description="Small data that is not confidential.",
)
