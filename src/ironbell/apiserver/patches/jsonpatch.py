"""JSON patch, with the limits that Kubernetes sets.

Source: RFC 6902; kubernetes/apiserver: pkg/endpoints/handlers/patch.go (limits).
"""

from __future__ import annotations

from typing import Any

from ironbell.api.client import ApiError, BadRequest, Invalid

MAX_OPERATIONS = 10_000


class TestFailed(Invalid):
    """A test in a patch does not hold."""


def apply_json_patch(target: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The target with all operations applied in order; `target` may be changed.

    Raises:
        BadRequest: this is no JSON patch.
        TestFailed: a test does not hold.
        Invalid: a path does not exist.
    """
    if not isinstance(operations, list):
        raise BadRequest("error decoding patch: a JSON patch is a list of operations")
    if not all(isinstance(operation, dict) for operation in operations):
        raise BadRequest("error decoding patch: an operation of a JSON patch is an object")
    if len(operations) > MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(f"Request entity too large: {limit}", code=413, reason="RequestEntityTooLarge")
    from ironbell.apiserver.patches.operations import apply_operations  # its library is not needed for a start

    return apply_operations(target, operations)
