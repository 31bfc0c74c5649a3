"""JSON patch, with the limits that Kubernetes sets.

Source: RFC 6902; kubernetes/apiserver: pkg/endpoints/handlers/patch.go (limits).
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import msgspec

from ironbell.api.client import ApiError, BadRequest, Invalid

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 << 20
_REJECTED = "the server rejected our request due to an error in our request"


def apply_json_patch(target: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The target with all operations applied in order; `target` may be changed.

    Raises:
        BadRequest: this is no JSON patch.
        Invalid: a path does not exist, or a test does not hold.
    """
    if not isinstance(operations, list):
        raise BadRequest("error decoding patch: a JSON patch is a list of operations")
    if not all(isinstance(operation, dict) for operation in operations):
        raise BadRequest("error decoding patch: an operation of a JSON patch is an object")
    if len(operations) > MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(f"Request entity too large: {limit}", code=413, reason="RequestEntityTooLarge")
    copied = 0
    document: Any = target
    try:
        for operation in operations:
            if isinstance(operation, dict) and operation.get("op") == "copy":
                copied += _size_at(document, operation.get("from"))
                if copied > MAX_COPIED_BYTES:
                    raise BadRequest(f"a JSON patch may copy at most {MAX_COPIED_BYTES} bytes")
            if operation.get("op") == "replace" and _lacks_key(document, operation.get("path")):
                operation = {**operation, "op": "add"}
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        TypeError,
        KeyError,
        IndexError,
        ValueError,
        AttributeError,
    ) as error:
        # The library's text may show values, which may be secret.
        raise Invalid(_REJECTED) from error
    if not isinstance(document, dict):
        raise Invalid(f"{_REJECTED}: no object is left")
    return document


def _lacks_key(document: Any, pointer: Any) -> bool:
    """Whether only the last step of a pointer is missing: kube-apiserver then adds what is to be replaced."""
    parent, key = jsonpatch.JsonPointer(str(pointer)).to_last(document)
    return isinstance(parent, dict) and key is not None and key not in parent


def _size_at(document: Any, pointer: Any) -> int:
    found = jsonpatch.JsonPointer(str(pointer)).resolve(document)
    return len(msgspec.json.encode(found))
