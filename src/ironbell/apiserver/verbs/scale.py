"""The scale subresource: replicas of any kind that declares their path.

Source: kubernetes/apiextensions-apiserver: pkg/registry/customresource/etcd.go (ScaleREST).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Invalid, PatchType, UnsupportedMediaType
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.fielderrors import FieldError, invalid
from ironbell.apiserver.patches.jsonpatch import apply_json_patch
from ironbell.apiserver.patches.merge import merge
from ironbell.apiserver.resources import ScalePaths
from ironbell.apiserver.verbs.bodies import decode_mapping, to_version
from ironbell.apiserver.verbs.read import get as get_object
from ironbell.apiserver.verbs.update import Object, update


async def get(context: Context, request: Request) -> bytes:
    """The object's `autoscaling/v1` Scale."""
    return msgspec.json.encode(_scale(request, msgspec.json.decode(await get_object(context, request))))


async def replace_scale(context: Context, request: Request, body: bytes) -> bytes:
    """Set the replicas from a whole Scale."""
    return await _set(context, request, lambda scale: decode_mapping(body, kind="Scale"))


async def patch_scale(context: Context, request: Request, body: bytes, patch_type: PatchType) -> bytes:
    """Set the replicas by a patch of the Scale."""
    if patch_type is PatchType.JSON:
        return await _set(context, request, lambda scale: apply_json_patch(scale, _decoded(body)))
    if patch_type is PatchType.APPLY:
        raise UnsupportedMediaType("apply is not supported on scale: use a merge patch")
    return await _set(context, request, lambda scale: merge(scale, decode_mapping(body)))


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the JSON patch is malformed: {error}") from error


async def _set(context: Context, request: Request, desired: Any) -> bytes:
    paths = _paths(request)

    def change(old: Object, scratch: Object) -> Object:
        scale = desired(_scale(request, scratch))
        replicas = _at(scale, ("spec", "replicas")) or 0
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise _invalid_scale(request, fault)
        version = _at(scale, ("metadata", "resourceVersion"))
        if version:
            scratch["metadata"]["resourceVersion"] = version
        _put(scratch, paths.spec_replicas, replicas)
        return scratch

    main = Request(request.identity, request.info, request.namespace, request.name, "scale", request.options)
    value = to_version(request.info, msgspec.json.decode(await update(context, main, change)))
    return msgspec.json.encode(_scale(request, value))


def _paths(request: Request) -> ScalePaths:
    if request.info.scale is None:
        raise status.not_found(request.info, request.name)
    return request.info.scale


def _scale(request: Request, value: Object) -> Object:
    paths, meta = _paths(request), value["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": _at(value, paths.spec_replicas) or 0},
        "status": {"replicas": _at(value, paths.status_replicas) or 0},
    }
    selector = _at(value, paths.label_selector) if paths.label_selector else None
    if selector:
        scale["status"]["selector"] = selector if isinstance(selector, str) else selector_text(selector)
    return scale


def selector_text(selector: Object) -> str:
    """A label selector, or a plain map of labels, in the form of a query."""
    labels: Object = selector
    expressions: Sequence[Object] = ()
    if selector.keys() <= {"matchLabels", "matchExpressions"}:
        labels, expressions = selector.get("matchLabels") or {}, selector.get("matchExpressions") or ()
    parts = {key: f"{key}={value}" for key, value in labels.items()}
    for expression in expressions:
        key, values = str(expression.get("key", "")), ",".join(sorted(expression.get("values") or ()))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts[key] = forms.get(expression.get("operator", ""), f"!{key}")
    return ",".join(parts[key] for key in sorted(parts))


def _invalid_scale(request: Request, fault: FieldError) -> Invalid:
    details = {"name": request.name, "group": "autoscaling", "kind": "Scale", "causes": [fault.cause]}
    return Invalid(f'Scale.autoscaling "{request.name}" is invalid: {fault}', details=details)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _put(value: Object, path: tuple[str, ...], leaf: Any) -> None:
    for key in path[:-1]:
        value = value.setdefault(key, {})
    value[path[-1]] = leaf
