"""Errors with the messages of Kubernetes, and the `Status` object that carries them.

Source: kubernetes/apimachinery: pkg/api/errors/errors.go (shapes of messages and details).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbell.api.client import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TimedOut,
)
from ironbell.apiserver.fielderrors import FieldError
from ironbell.apiserver.fielderrors import invalid as field_invalid
from ironbell.apiserver.resources import ResourceInfo

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def status_object(error: ApiError) -> dict[str, Any]:
    """The `Status` object of an HTTP response for an error."""
    meta = {"continue": error.continue_token} if isinstance(error, Expired) and error.continue_token else {}
    status: dict[str, Any] = {
        "kind": "Status", "apiVersion": "v1", "metadata": meta, "status": "Failure", "message": error.message,
    }  # fmt: skip
    if error.reason:
        status["reason"] = error.reason
    if error.details:
        status["details"] = error.details
    status["code"] = error.code
    return status


def success(info: ResourceInfo, *, name: str, uid: str) -> dict[str, Any]:
    """The `Status` object of a completed delete."""
    details = _details(info, name)
    details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _details(info: ResourceInfo, name: str) -> dict[str, Any]:
    details = {"name": name, "group": info.group, "kind": info.plural}
    return {key: value for key, value in details.items() if value}


def unnamed(name: str) -> BadRequest:
    """The error for an object without the name that it must have itself, instead of only in the URL."""
    return BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def not_found(info: ResourceInfo, name: str) -> NotFound:
    return NotFound(f'{info.resource} "{name}" not found', details=_details(info, name))


def already_exists(info: ResourceInfo, name: str, *, deleting: bool = False) -> AlreadyExists:
    text = f'{info.resource} "{name}" already exists'
    return AlreadyExists(f"object is being deleted: {text}" if deleting else text, details=_details(info, name))


def conflict(info: ResourceInfo, name: str, *, detail: str = MODIFIED) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {info.resource} "{name}": {detail}', details=_details(info, name)
    )


def stale(info: ResourceInfo, name: str, *, detail: str) -> Conflict:
    """The error for a precondition that does not hold; it names the kind where other conflicts name the resource."""
    return Conflict(
        f'Operation cannot be fulfilled on {info.qualified_kind} "{name}": {detail}',
        details=_details(info, name) | {"kind": info.kind},
    )


def forbidden(info: ResourceInfo, name: str, *, detail: str, causes: Sequence[dict[str, str]] = ()) -> Forbidden:
    details = _details(info, name)
    if causes:
        details["causes"] = list(causes)
    subject = f'{info.resource} "{name}"' if name else info.resource
    return Forbidden(f"{subject} is forbidden: {detail}", details=details)


def invalid(info: ResourceInfo, name: str, *, errors: Sequence[FieldError]) -> Invalid:
    """The error for all problems of one object; several are put in brackets, repeated ones once."""
    listed = _listed(errors)
    details: dict[str, Any] = {"name": name} if name else {}
    if info.group:
        details["group"] = info.group
    details["kind"] = info.kind
    details["causes"] = [error.cause for error in errors]
    return Invalid(f'{info.qualified_kind} "{name}" is invalid: {listed}', details=details)


def wrong_kind(info: ResourceInfo, name: str, kind: str) -> Invalid:
    """The error for an object of a custom resource that has another kind."""
    fault = field_invalid("kind", kind, f"must be {info.kind}")
    details = {"name": name, "group": info.group, "kind": kind, "causes": [fault.cause]}
    return Invalid(f'{kind}.{info.group} "{name}" is invalid: {fault}', details=details)


def _listed(errors: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Invalid:
    """The error for options of a request, such as `ListOptions`."""
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [error.cause for error in errors]}
    return Invalid(f'{kind}.meta.k8s.io "" is invalid: {_listed(errors)}', details=details)


def invalid_patch(result: str, detail: str) -> Invalid:
    """The error for a patch whose result is not valid for its kind."""
    error = field_invalid("patch", result, detail)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause]})


def future_version(requested: int, current: int) -> TimedOut:
    """The error for a version that the server has not reached."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return TimedOut(f"Timeout: Too large resource version: {requested}, current: {current}", details=details)


def invalid_resource(info: ResourceInfo, name: str, *, error: FieldError) -> Invalid:
    """The error for a problem that is found before the kind is known: the message names the resource."""
    details = {**(invalid(info, name, errors=[error]).details or {}), "kind": info.plural}
    return Invalid(f'{info.resource} "{name}" is invalid: {error}', details=details)


def not_strict(faults: Sequence[str]) -> str:
    """The message of strict field validation about unknown and duplicate fields."""
    return f"strict decoding error: {', '.join(faults)}"


def expired_version(requested: int, oldest: int) -> Expired:
    return Expired(f"too old resource version: {requested} ({oldest})")
