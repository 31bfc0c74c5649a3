"""The operations of a JSON patch, applied one after the other.

Source: RFC 6902; kubernetes/apiserver: pkg/endpoints/handlers/patch.go (what may be copied; replacing what is missing).
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import msgspec

from ironbell.api.client import BadRequest, Invalid
from ironbell.apiserver.patches.jsonpatch import TestFailed

MAX_COPIED_BYTES = 3 << 20
_REJECTED = "the server rejected our request due to an error in our request"


def apply_operations(target: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The target with all operations applied in order; `target` may be changed.

    Raises:
        BadRequest: more is copied than may be.
        TestFailed: a test does not hold.
        Invalid: a path does not exist.
    """
    copied = 0
    document: Any = target
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                copied += _size_at(document, operation.get("from"))
                if copied > MAX_COPIED_BYTES:
                    raise BadRequest(f"a JSON patch may copy at most {MAX_COPIED_BYTES} bytes")
            if operation.get("op") == "replace" and _lacks_key(document, operation.get("path")):
                operation = {**operation, "op": "add"}
            document = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
    except jsonpatch.JsonPatchTestFailed as error:
        raise TestFailed(_REJECTED) from error
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
    """Return whether only the last step of a pointer is missing: kube-apiserver then adds the value that a patch
    replaces.
    """
    parent, key = jsonpatch.JsonPointer(str(pointer)).to_last(document)
    return isinstance(parent, dict) and key is not None and key not in parent


def _size_at(document: Any, pointer: Any) -> int:
    value = jsonpatch.JsonPointer(str(pointer)).resolve(document)
    return len(msgspec.json.encode(value))
