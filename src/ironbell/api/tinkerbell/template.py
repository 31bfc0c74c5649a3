"""Template: the text that a Workflow is rendered from.

Source: tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/template.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ironbell.api.crd.markers import Schema
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class TemplateState(StrEnum):
    """Values of `status.state`; the schema leaves the set open."""

    READY = "Ready"
    ERROR = "Error"


class TemplateSpec(Model, frozen=True):
    """The text."""

    data: Annotated[str, Schema("Workflow document in YAML, with Go template expressions.")] = ""


class TemplateStatus(Model, frozen=True):
    """Observed state: whether the text is valid."""

    state: Annotated[str, Schema("Ready, or Error where the text does not parse.")] = ""


class Template(Resource, frozen=True):
    """A workflow document with expressions that are filled in for each machine."""

    spec: TemplateSpec = TemplateSpec()
    status: TemplateStatus = TemplateStatus()


TEMPLATE: Kind[Template] = Kind(
    group="tinkerbell.org",
    version="v1alpha1",
    kind="Template",
    plural="templates",
    model=Template,
    short_names=("tpl",),
    categories=("tinkerbell",),
    columns=(Column("State", ".status.state"),),
    has_status=True,
)
