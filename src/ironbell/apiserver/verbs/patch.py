"""PATCH: the content type selects the way in which the new object is computed from the old one.

Source: kubernetes/apiserver: pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import BadRequest, PatchType, UnsupportedMediaType
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.patches.jsonpatch import apply_json_patch
from ironbell.apiserver.patches.merge import merge, strategic_merge
from ironbell.apiserver.schema.objectmeta import with_metadata
from ironbell.apiserver.verbs.apply import apply
from ironbell.apiserver.verbs.bodies import decode_mapping
from ironbell.apiserver.verbs.duplicates import NO_FAULTS, TextFaults, json_patch_faults, text_faults
from ironbell.apiserver.verbs.prepare import unusable_patch
from ironbell.apiserver.verbs.update import Change, Object, update


async def patch(context: Context, request: Request, body: bytes, patch_type: PatchType) -> bytes:
    """Patch an object; an apply patch (in JSON) creates a missing one."""
    if patch_type is PatchType.APPLY:
        config = b"{}" if body.strip() == b"null" else body
        return await apply(context, request, decode_mapping(config, error_prefix="error decoding YAML"))
    change, faults = _change(request, body, patch_type)
    if request.options.field_validation not in ("Strict", "Warn"):
        faults = NO_FAULTS
    return await update(context, request, change, error_for=unusable_patch, faults=faults)


def _change(request: Request, body: bytes, patch_type: PatchType) -> tuple[Change, TextFaults]:
    """The change of a patch, and the duplicate fields of its text."""
    # Patches become part of the new object, so each attempt decodes its own.
    if patch_type is PatchType.JSON:
        faults = json_patch_faults(body, _decode_list(body))

        def by_operations(old: Object, scratch: Object) -> Object:
            return apply_json_patch(scratch, msgspec.json.decode(body))

        return by_operations, faults
    faults = text_faults(body, decode_mapping(body))
    if patch_type is PatchType.MERGE:

        def by_merge(old: Object, scratch: Object) -> Object:
            merged: Object = merge(scratch, msgspec.json.decode(body))
            return merged

        return by_merge, faults
    if request.info.custom:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    schema = with_metadata(request.info.schema)

    def by_strategy(old: Object, scratch: Object) -> Object:
        return strategic_merge(scratch, msgspec.json.decode(body), schema)

    return by_strategy, faults


def _decode_list(body: bytes) -> list[Any]:
    try:
        decoded: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"error decoding patch: {error}") from error
    if not isinstance(decoded, list):
        raise BadRequest("error decoding patch: json: cannot unmarshal: it must be a list of operations")
    return decoded
