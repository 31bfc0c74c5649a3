"""Mutations of an object by policies: an applied configuration, or a JSON patch.

Source: kubernetes/api: admissionregistration/v1/types.go; kubernetes/apiserver: pkg/admission/plugin/policy/mutating
(compilation.go; patch/smd.go, json_patch.go), pkg/cel/mutation/dynamic/objects.go (names of types).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ironbell.api.client import ApiError
from ironbell.apiserver.managedfields.schemas import MissingKey, child_schema, declared, is_atomic, item_schema
from ironbell.apiserver.managedfields.typed import as_message, typed_faults
from ironbell.apiserver.patches.apply import merge_applied
from ironbell.apiserver.patches.jsonpatch import TestFailed, apply_json_patch
from ironbell.apiserver.policies.spec import (
    AnyPolicy,
    AnyPolicySpec,
    Expression,
    PolicyKind,
    compiled,
    compiled_conditions,
    compiled_variables,
    known_names,
)
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.apiserver.webhooks.configuration import GROUP
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.cel.functions.functions import FUNCTIONS
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.values.messages import PATCH_TYPES, MessageValue
from ironbell.codec.cel.values.values import type_name

APPLY, JSON_PATCH = "ApplyConfiguration", "JSONPatch"

Object = dict[str, Any]


class MutationError(IronbellError):
    """A mutation cannot be carried out."""

    reason, retry = "InvalidMutation", Retry.NEVER


class PatchExpression(msgspec.Struct, frozen=True):
    """An expression that returns a configuration or a patch."""

    expression: str = ""


class Mutation(msgspec.Struct, frozen=True, rename="camel"):
    """One change of objects."""

    patch_type: str = ""
    apply_configuration: PatchExpression | None = None
    json_patch: PatchExpression | None = msgspec.field(default=None, name="jsonPatch")

    @property
    def expression(self) -> str:
        patch = self.json_patch if self.patch_type == JSON_PATCH else self.apply_configuration
        return patch.expression if patch is not None else ""


class MutatingSpec(AnyPolicySpec, frozen=True, rename="camel"):
    """A mutating policy's specification."""

    mutations: tuple[Mutation, ...] | None = None
    reinvocation_policy: str = "Never"


class MutatingPolicy(AnyPolicy, frozen=True, eq=False):
    """A mutating policy, compiled."""

    mutations: tuple[tuple[Mutation, Expression], ...]
    reinvocable: bool
    """Whether it runs again if a later plugin changed the object."""


class _Stored(msgspec.Struct, frozen=True):
    spec: MutatingSpec = MutatingSpec()


def _read(name: str, body: bytes) -> MutatingPolicy:
    spec = msgspec.json.decode(body, type=_Stored).spec
    known = known_names(has_params=spec.param_kind is not None, has_variables=True)
    return MutatingPolicy(
        name,
        spec,
        compiled_conditions(spec, known),
        compiled_variables(spec, known),
        tuple((mutation, compiled(mutation.expression, (*known, PATCH_TYPES))) for mutation in spec.mutations or ()),
        spec.reinvocation_policy == "IfNeeded",
    )


MUTATING = PolicyKind(f"mutatingadmissionpolicies.{GROUP}", f"mutatingadmissionpolicybindings.{GROUP}", _read)


def mutated(mutation: Mutation, expression: Expression, values: Mapping[str, Any], info: ResourceInfo) -> Object:
    """A copy of `object` among the values with a mutation carried out, and defaults filled in.

    Raises:
        MutationError: the expression fails, or its result cannot be applied to the object.
        ApiError: the result is not a valid object of its kind.
    """
    try:
        result = expression(values)
    except IronbellError as error:
        raise MutationError(f"expression '{mutation.expression}' resulted in error: {error.message}") from error
    apply_patch = _patched if mutation.patch_type == JSON_PATCH else _applied
    changed = apply_patch(result, values["object"], info)
    info.compiled.default(changed)
    return changed


def _applied(patch: Any, live: Object, info: ResourceInfo) -> Object:
    if not isinstance(patch, MessageValue):
        raise MutationError(f"unsupported return type from ApplyConfiguration expression: {type_name(patch)}")
    _check_names(patch)
    config = {**_plain(patch), "apiVersion": live["apiVersion"], "kind": live["kind"]}
    schema = with_metadata(info.schema)
    detail = "error applying patch: "
    faults = typed_faults(config, schema)
    if faults:
        raise MutationError(f"{detail}failed to convert patch object to typed object: {as_message(faults)}")
    pieces = list(_pieces(config, schema, ""))
    if pieces:
        listed = ", ".join(pieces)
        raise MutationError(
            f"{detail}invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {listed}"
        )
    try:
        changed = _copy(merge_applied(live, config, schema))
    except MissingKey as error:
        missing = f'associative list with keys has an element that omits key field "{error}"'
        raise MutationError(f"{detail}failed to convert original object to typed object: {missing}") from error
    misfit = info.compiled.misfit(changed)
    if misfit:
        raise MutationError(misfit)
    info.compiled.prune(changed)
    return changed


def _pieces(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """The paths of lists and maps that are atomic: a mutation that sets such a value replaces it as a whole."""
    if isinstance(value, dict):
        if is_atomic(schema, value):
            yield path
        for name, part in value.items():
            if declared(schema, name) is not None:
                yield from _pieces(part, child_schema(schema, name), f"{path}.{name}")
    elif isinstance(value, list):
        if is_atomic(schema, value):
            yield path
        for index, item in enumerate(value):
            yield from _pieces(item, item_schema(schema), f"{path}[{index}]")


def _patched(patch: Any, live: Object, info: ResourceInfo) -> Object:
    operations = [_operation(operation) for operation in patch]
    try:
        changed = apply_json_patch(_copy(live), operations)
    except ApiError as error:
        detail = _missing_path(_copy(live), operations)
        if isinstance(error, TestFailed) and not detail:
            return _copy(live)
        raise MutationError(f"JSON Patch: {detail or error.message}") from error
    misfit = info.compiled.misfit(changed)
    if misfit:
        raise _internal(misfit)
    if not info.custom and (unknown := info.compiled.prune(changed)):
        raise _internal("strict decoding error: " + ", ".join(f'unknown field "{field}"' for field in unknown))
    return changed


def _missing_path(document: Object, operations: list[Object]) -> str:
    """The path that the first failing operation lacks; empty if it fails for another reason."""
    for operation in operations:
        try:
            document = apply_json_patch(document, [operation])
        except ApiError:
            op, path, source = operation["op"], operation["path"], operation.get("from", "")
            match op:
                case "test" if isinstance(_at(document, path.rpartition("/")[0]), dict | list):
                    return ""
                case "test":
                    return f"test operation does not apply: is missing path: {path}: missing value"
                case "move" | "copy":
                    return f"{op} operation does not apply: doc is missing from path: {source}: missing value"
                case "replace":
                    return f"replace operation does not apply: doc is missing path: {path}: missing value"
                case "remove" if isinstance(_at(document, path.rpartition("/")[0]), dict):
                    detail = f"Unable to remove nonexistent key: {path.rpartition('/')[2]}: missing value"
                    return f"error in remove for path: '{path}': {detail}"
                case "add" | "remove":
                    return f'{op} operation does not apply: doc is missing path: "{path}": missing value'
            return f"Unexpected kind: {op}"
    return ""


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _operation(patch: Any) -> Object:
    if not isinstance(patch, MessageValue):
        raise MutationError(f"type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got "
                            f"element of {type_name(patch)}")  # fmt: skip
    operation: Object = {"op": patch.get("op", ""), "path": patch.get("path", "")}
    if patch.get("from"):
        operation["from"] = patch["from"]
    if "value" in patch:
        if isinstance(patch["value"], MessageValue):
            _check_names(patch["value"])
        operation["value"] = _plain(patch["value"])
    return operation


def _check_names(patch: MessageValue) -> None:
    faults = list(_misnamed(patch, patch.type_name))
    if faults:
        raise MutationError("type mismatch: " + "\n".join(faults))


def _misnamed(value: Any, path: str) -> Iterator[str]:
    """The values whose type name is that of another field."""
    if isinstance(value, MessageValue):
        if value.type_name != path:
            yield (
                f'unexpected type name "{value.type_name}", expected "{path}", which matches field name path from root '
                "Object type"
            )
        for name, part in value.items():
            yield from _misnamed(part, f"{path}.{name}")
    elif isinstance(value, list | dict):
        for part in value if isinstance(value, list) else value.values():
            yield from _misnamed(part, path)


def _plain(value: Any) -> Any:
    """A value of an expression as JSON."""
    match value:
        case dict():
            for key in value:
                if not isinstance(key, str):
                    raise MutationError(f"map key {key!r} is of type {type_name(key)}, not string")
            return {key: _plain(part) for key, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case Uint():
            return value.value
        case float() if value.is_integer():
            return int(value)
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | timedelta():
            return FUNCTIONS["string"](value)
    raise MutationError(f"a value of type {type_name(value)} cannot be marshalled to JSON")


def _copy(value: Object) -> Object:
    copy: Object = msgspec.json.decode(msgspec.json.encode(value))
    return copy


def _internal(message: str) -> ApiError:
    return ApiError(f"Internal error occurred: {message}", details={"causes": [{"message": message}]})
