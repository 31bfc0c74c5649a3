"""Toys: kinds of a system that exists in tests only."""

from __future__ import annotations

from typing import Annotated, Any

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class ToySpec(Model, frozen=True):
    """What a toy should be like."""

    size: Annotated[int, Schema("How large it is.")] = 0
    color: Annotated[str, Schema("Its color.")] = ""


class ToyStatus(Model, frozen=True):
    """What a toy is like."""

    size: Annotated[int, Schema("How large it has become.")] = 0


class Toy(Resource, frozen=True):
    """A toy."""

    spec: ToySpec = ToySpec()
    status: ToyStatus = ToyStatus()


TOY: Kind[Toy] = Kind(
    group="toys.ironbell.dev",
    version="v1",
    kind="Toy",
    plural="toys",
    model=Toy,
    columns=(Column("Size", ".status.size", "integer"),),
    has_status=True,
)
KINDS: tuple[Kind[Any], ...] = (TOY,)
