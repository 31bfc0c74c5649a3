"""Patches of a ClusterClass.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2.
"""

from __future__ import annotations

from typing import Annotated, Any

from ironbell.api.cluster.common import API_VERSION, KIND_NAME
from ironbell.api.crd.markers import Schema, Text256, Text512, Text1024, Text10240, required
from ironbell.api.meta import Model


class PatchSelectorMatchClass(Model, frozen=True):
    """Classes of workers by name, with * as wildcard."""

    names: Annotated[list[Text256], Schema(max_items=100, list_type="atomic")] = []


class PatchSelectorMatch(Model, frozen=True):
    """Selection of the templates by their place in the class."""

    schema_ = Schema(min_properties=1)

    control_plane: bool | None = None
    infrastructure_cluster: bool | None = None
    machine_deployment_class: PatchSelectorMatchClass | None = None
    machine_pool_class: PatchSelectorMatchClass | None = None


class PatchSelector(Model, frozen=True):
    """Templates of one type, by where the class uses them."""

    api_version: Annotated[str, Schema(pattern=API_VERSION, min_length=1, max_length=317)] = required(str)
    kind: Annotated[str, Schema(pattern=KIND_NAME, min_length=1, max_length=63)] = required(str)
    match_resources: PatchSelectorMatch = required(PatchSelectorMatch)


class JsonPatchValue(Model, frozen=True):
    """The value of an operation, taken from a variable or from a template."""

    variable: Text256 = ""
    template: Text10240 = ""


class JsonPatch(Model, frozen=True):
    """One operation in the sense of RFC 6902."""

    op: Annotated[str, Schema(enum=("add", "replace", "remove"))] = required(str)
    path: Text512 = required(str)
    value: Any = None
    value_from: JsonPatchValue | None = None


class PatchDefinition(Model, frozen=True):
    """JSON patches, and the templates that they go to."""

    selector: PatchSelector = required(PatchSelector)
    json_patches: Annotated[list[JsonPatch], Schema(min_items=1, max_items=100, list_type="atomic")] = required(list)


class ExternalPatchDefinition(Model, frozen=True):
    """Runtime extensions that make or check the patches."""

    generate_patches_extension: Text512 = ""
    validate_topology_extension: Text512 = ""
    discover_variables_extension: Text512 = ""
    settings: dict[str, str] = {}


class ClusterClassPatch(Model, frozen=True):
    """Changes to templates, made with the values of variables."""

    name: Text256 = required(str)
    description: Text1024 = ""
    enabled_if: Text256 = ""
    definitions: Annotated[list[PatchDefinition], Schema(max_items=100, list_type="atomic")] = []
    external: ExternalPatchDefinition | None = None
