"""Patches that are defined in the class: their selection and their operations.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/inline/json_patch_generator.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbell.api.cluster.classes.patches import ClusterClassPatch, JsonPatch
from ironbell.controllers.capi.topology.desired.model import TopologyError
from ironbell.controllers.capi.topology.patches.items import Item, matches
from ironbell.controllers.capi.topology.patches.operations import applied
from ironbell.controllers.capi.topology.patches.rendering import rendered_value, value_at
from ironbell.kube.decision import Fields


def patched(item: Item, patch: ClusterClassPatch, variables: Mapping[str, Any]) -> Item:
    """The item after one patch; the same item if the patch does not select it.

    All values are computed before anything is changed.

    Raises:
        TopologyError: a value cannot be computed, or an operation does not apply.
    """
    selected = [definition for definition in patch.definitions if matches(item, definition.selector)]
    if not selected:
        return item
    kind = item.body.get("kind")
    if not _is_enabled(patch.enabled_if, variables, kind):
        return item
    operation_lists = [
        [_operation(json_patch, variables, kind) for json_patch in definition.json_patches] for definition in selected
    ]
    body = item.body
    for operations in operation_lists:
        try:
            body = _kept(body, applied(body, operations))
        except TopologyError as error:
            raise TopologyError(f"failed to apply patch: {error.message}") from error
    return item.with_body(body)


def _kept(old: Fields, new: Fields) -> Fields:
    """Keep only changes of spec, labels and annotations, and remove none of these as a whole."""
    result = {**old, **({"spec": new["spec"]} if "spec" in new else {})}
    new_metadata = new.get("metadata")
    metadata: Fields = dict(old.get("metadata") or {})
    if isinstance(new_metadata, dict):
        metadata |= {name: new_metadata[name] for name in ("labels", "annotations") if name in new_metadata}
    return {**result, "metadata": metadata}


def _is_enabled(condition: str, variables: Mapping[str, Any], kind: Any) -> bool:
    if not condition:
        return True
    try:
        return rendered_value(condition, variables) is True
    except TopologyError as error:
        step = f'failed to calculate if patch is enabled for "{kind}": failed to calculate value for enabledIf'
        raise TopologyError(f"{step}: {error.message}") from error


def _operation(patch: JsonPatch, variables: Mapping[str, Any], kind: Any) -> Fields:
    if patch.op == "remove":
        return {"op": patch.op, "path": patch.path}
    try:
        return {"op": patch.op, "path": patch.path, "value": _value(patch, variables)}
    except TopologyError as error:
        raise TopologyError(f'failed to generate JSON patches for "{kind}": {error.message}') from error


def _value(patch: JsonPatch, variables: Mapping[str, Any]) -> Any:
    source = patch.value_from
    if source is None:
        if patch.value is None:
            raise TopologyError("failed to calculate value: neither .value nor .valueFrom are set")
        return patch.value
    if patch.value is not None:
        raise TopologyError("failed to calculate value: both .value and .valueFrom are set")
    if bool(source.variable) == bool(source.template):
        which = "both" if source.variable else "neither"
        joint = "and" if source.variable else "nor"
        raise TopologyError(
            f"failed to calculate value: .valueFrom is set, but {which} .valueFrom.variable {joint}"
            " .valueFrom.template are set"
        )
    try:
        if source.variable:
            return value_at(variables, source.variable)
        return rendered_value(source.template, variables)
    except TopologyError as error:
        suffix = "" if source.variable else " for template"
        raise TopologyError(f"failed to calculate value{suffix}: {error.message}") from error
