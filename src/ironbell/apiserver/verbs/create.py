"""Create: a new object, under its name or a generated one.

Source: kubernetes/apiserver: pkg/registry/rest/create.go, pkg/admission/plugin/namespace/lifecycle/admission.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import BadRequest, NotFound
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.managedfields import ownership
from ironbell.apiserver.metadata import MAX_GENERATED_BASE
from ironbell.apiserver.verbs.bodies import body_of, check_address, decode_mapping, require_name, storable
from ironbell.apiserver.verbs.duplicates import NO_FAULTS, TextFaults
from ironbell.apiserver.verbs.prepare import lost_in_decoding, shape, validate
from ironbell.base.clock import rfc3339
from ironbell.base.randomness import name_suffix, uuid4

NAMESPACES = "namespaces"
_NAME_ATTEMPTS = 8


async def create(context: Context, request: Request, body: bytes) -> bytes:
    """Create an object from a request's body."""
    value = decode_mapping(body, kind=request.info.kind)
    faults = lost_in_decoding(request, body, value)
    check_address(request, value)
    return await create_value(context, request, value, faults=faults)


async def create_missing(context: Context, request: Request, body: bytes) -> bytes:
    """Create the object that an update did not find. Its resourceVersion is ignored, as no object is replaced.

    Raises:
        Conflict: the object has a uid, so the update is for an existing object.
        AlreadyExists: another client created the object first.
    """
    value = decode_mapping(body, kind=request.info.kind)
    faults = lost_in_decoding(request, body, value)
    require_name(request, value)
    check_address(request, value)
    uid = value["metadata"].get("uid")
    if uid:
        detail = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
        raise status.conflict(request.info, request.name, detail=detail)
    value["metadata"].pop("resourceVersion", None)
    return await create_value(context, request, value, faults=faults)


async def create_value(
    context: Context, request: Request, value: dict[str, Any], *, applied: bool = False, faults: TextFaults = NO_FAULTS
) -> bytes:
    """Create an object from decoded data, which is not copied.

    An `applied` object has its own `managedFields`; `faults` are those of its text.
    """
    value = {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": value.get("metadata"), **value}
    shape(request, value, faults=faults)
    if value["metadata"].pop("resourceVersion", None):
        raise BadRequest("resourceVersion should not be set on objects to be created")
    _begin_life(context, request, value)
    if context.admission.concerns(request.info):
        value = await _mutated(context, request, value)
    request = _named(context, request, value)
    request.info.strategy.prepare_create(value)
    if not applied:
        ownership.track_created(request, value, now=context.clock.now())
    await validate(request, value, None)
    if context.admission.concerns(request.info):
        await context.admission.review(_review(request, value))
    stored = await storable(request.info, dict(value))
    check_namespace(context, request)
    existing = context.store.latest(request.info.store_key, request.key)
    if existing is not None:
        raise status.already_exists(request.info, request.name, deleting=existing.deleting)
    if request.options.dry_run:
        await context.store.settle()
        return msgspec.json.encode(value)
    entry = await context.store.put(request.info.store_key, request.key, stored)
    return await body_of(request.info, entry)


def _begin_life(context: Context, request: Request, value: dict[str, Any]) -> None:
    meta = value["metadata"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(name, None)
    meta["uid"] = uuid4(context.randomness)
    meta["creationTimestamp"] = rfc3339(context.clock.now())
    info = request.info
    if info.generations:
        meta["generation"] = 1
    if info.has_status and not info.keeps_first_status and value.pop("status", None) is not None and not info.custom:
        info.compiled.default(value)
    if not info.namespaced:
        meta.pop("namespace", None)


async def _mutated(context: Context, request: Request, value: dict[str, Any]) -> dict[str, Any]:
    changed = await context.admission.mutate(_review(request, value))
    if changed is not None and changed is not value:
        value = changed
        shape(request, value)
    return value


def _review(request: Request, value: dict[str, Any]) -> AdmissionRequest:
    return AdmissionRequest(
        Operation.CREATE, request.info, request.namespace, value["metadata"].get("name", ""), request.identity, value,
        dry_run=request.options.dry_run,
    )  # fmt: skip


def _named(context: Context, request: Request, value: dict[str, Any]) -> Request:
    """Generate the name of an object that has only a `generateName`."""
    meta = value["metadata"]
    base = meta.get("generateName", "")
    if meta.get("name") or not base:
        return msgspec.structs.replace(request, name=meta.get("name", ""))
    for _ in range(_NAME_ATTEMPTS):
        meta["name"] = base[:MAX_GENERATED_BASE] + name_suffix(context.randomness)
        named = msgspec.structs.replace(request, name=meta["name"])
        if context.store.latest(request.info.resource, named.key) is None:
            break
    return named


def check_namespace(context: Context, request: Request) -> None:
    """Check that the namespace of a new object exists and is not being deleted.

    Raises:
        NotFound: the namespace does not exist.
        Forbidden: the namespace is being deleted.
    """
    if not request.info.namespaced:
        return
    name = request.namespace
    if not name:
        raise BadRequest("an empty namespace may not be set during creation")
    entry = context.store.latest(NAMESPACES, ("", name))
    if entry is None:
        raise NotFound(f'namespaces "{name}" not found', details={"name": name, "kind": "namespaces"})
    if entry.deleting:
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        detail = f"unable to create new content in namespace {name} because it is being terminated"
        raise status.forbidden(request.info, request.name, detail=detail, causes=[cause])
