"""Webhooks of Cluster API's kinds for a real API server: conversion between versions, completion and checks of writes.

They do what `app.admission.definitions` does in the embedded API. Without them such objects cannot be written, nor read
in their older version: every replica serves them, and none needs the Lease.

Source: apiextensions.k8s.io/v1 ConversionReview, admission.k8s.io/v1 AdmissionReview.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ironbell.api.client import ApiError
from ironbell.api.conversion.convert import convert
from ironbell.api.conversion.paths import ConversionError
from ironbell.api.conversion.rules import ApiVersionOf
from ironbell.app.admission.kinds import Rules, rules_of
from ironbell.app.admission.lookups import PATIENCE_S, Lookups, Reader
from ironbell.contract.admission_lookups import AdmissionResponse
from ironbell.contract.system import System

Handler: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Handles the body of a request and returns that of the response. An exception is a defect, and fails the request."""

Object: TypeAlias = dict[str, Any]

CONVERT_PATH: Final = "/convert"

_FORBIDDEN: Final = 403
_UNPROCESSABLE: Final = 422


class _ConversionRequest(msgspec.Struct, rename="camel"):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Object] = []


class _ConversionReview(msgspec.Struct):
    request: _ConversionRequest


class _AdmissionRequest(msgspec.Struct, rename="camel"):
    uid: str
    name: str = ""
    namespace: str = ""
    operation: str = ""
    object: Object | None = None
    old_object: Object | None = None


class _AdmissionReview(msgspec.Struct):
    request: _AdmissionRequest


def mutate_path(definition: str) -> str:
    """Path at which writes of a kind are completed; the kind has the name of its definition."""
    return f"/mutate/{definition}"


def validate_path(definition: str) -> str:
    """Path at which writes of a kind are checked."""
    return f"/validate/{definition}"


def scale_path(definition: str) -> str:
    """Path at which changes of only a kind's number of replicas are checked."""
    return f"/validate-scale/{definition}"


def cluster_handlers(
    api_version_of: ApiVersionOf, reader: Reader, systems: Iterable[System], *, patience_s: float = PATIENCE_S
) -> Mapping[str, Handler]:
    """The webhooks of the systems' kinds, by path. `api_version_of` returns the version of references in objects of
    older versions, `reader` reads other objects, and `patience_s` is the time that an object gets to reach its expected
    state."""
    lookups = Lookups(reader, patience_s=patience_s)
    handlers: dict[str, Handler] = {CONVERT_PATH: _conversion(api_version_of)}
    for system in systems:
        for definition, rules in rules_of(system).items():
            handlers[mutate_path(definition)] = _completion(rules, lookups)
            handlers[validate_path(definition)] = _check(rules, lookups)
            if definition in system.scale_checked:
                handlers[scale_path(definition)] = _scale_check(rules, reader, lookups)
    return handlers


def _conversion(api_version_of: ApiVersionOf) -> Handler:
    async def handle(body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=_ConversionReview).request
        response: Object = {"uid": request.uid, "result": {"status": "Success"}}
        try:
            response["convertedObjects"] = await asyncio.to_thread(_converted, request, api_version_of)
        except ConversionError as error:
            response["result"] = {"status": "Failed", "message": error.message}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
        return msgspec.json.encode(review)

    return handle


def _converted(request: _ConversionRequest, api_version_of: ApiVersionOf) -> list[Object]:
    return [convert(value, request.desired_api_version, api_version_of) for value in request.objects]


def _completion(rules: Rules, lookups: Lookups) -> Handler:
    async def handle(body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=_AdmissionReview).request
        response: Object = {"uid": request.uid, "allowed": True}
        if request.object is not None:
            try:
                filled = await rules.completed(_placed(request.object, request), request.old_object, lookups)
            except ApiError as error:
                return _unanswered(request, error)
            changes = [
                {"op": "add", "path": f"/{part}", "value": filled[part]}
                for part in ("metadata", "spec")
                if part in filled and filled[part] != request.object.get(part)
            ]
            if changes:
                response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(changes)).decode()}
        return _review(response)

    return handle


def _check(rules: Rules, lookups: Lookups) -> Handler:
    async def handle(body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=_AdmissionReview).request
        new = None if request.object is None else _placed(request.object, request)
        try:
            verdict = await rules.reviewed(new, request.old_object, lookups)
        except ApiError as error:
            return _unanswered(request, error)
        return _decision(rules, request, verdict)

    return handle


def _scale_check(rules: Rules, reader: Reader, lookups: Lookups) -> Handler:
    async def handle(body: bytes) -> bytes:
        request = msgspec.json.decode(body, type=_AdmissionReview).request
        where = rules.alone.kind.collection
        try:
            old: Object = msgspec.json.decode(await reader.get(where, request.namespace, request.name))
            replicas = ((request.object or {}).get("spec") or {}).get("replicas", 0)
            new = {**old, "spec": {**(old.get("spec") or {}), "replicas": replicas}}
            verdict = await rules.reviewed(new, old, lookups)
        except ApiError as error:
            return _unanswered(request, error)
        return _decision(rules, request, verdict)

    return handle


def _placed(value: Object, request: _AdmissionRequest) -> Object:
    """The object with its namespace, which a client may leave to the address of its request."""
    metadata = value.get("metadata") or {}
    if not request.namespace or metadata.get("namespace"):
        return value
    return {**value, "metadata": {**metadata, "namespace": request.namespace}}


def _decision(rules: Rules, request: _AdmissionRequest, verdict: AdmissionResponse) -> bytes:
    is_rejected = bool(verdict.problems or verdict.forbidden)
    response: Object = {"uid": request.uid, "allowed": not is_rejected}
    if is_rejected:
        response["status"] = _rejection(rules, request.name, verdict)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return _review(response)


def _unanswered(request: _AdmissionRequest, error: ApiError) -> bytes:
    """A temporary rejection: an object that the decision needs cannot be read."""
    status = {"status": "Failure", "code": error.code, "reason": error.reason, "message": error.message}
    return _review({"uid": request.uid, "allowed": False, "status": status})


def _rejection(rules: Rules, name: str, verdict: AdmissionResponse) -> Object:
    kind = rules.alone.kind
    if not verdict.problems:
        return {
            "status": "Failure",
            "code": _FORBIDDEN,
            "reason": "Forbidden",
            "message": f'{kind.plural}.{kind.group} "{name}" is forbidden: {verdict.forbidden}',
            "details": {"name": name, "group": kind.group, "kind": kind.plural},
        }
    messages = [str(problem) for problem in verdict.problems]
    causes = [{"reason": item.kind, "message": item.message, "field": item.path} for item in verdict.problems]
    listed = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    return {
        "status": "Failure",
        "code": _UNPROCESSABLE,
        "reason": "Invalid",
        "message": f'{kind.kind}.{kind.group} "{name}" is invalid: {listed}',
        "details": {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes},
    }


def _review(response: Object) -> bytes:
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
