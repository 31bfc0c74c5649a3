"""Update: all changes of an existing object, decided on its latest state.

Replace, patches, apply and the server's own changes differ only in how the new object is computed from the old one.

Source: kubernetes/apiserver: pkg/registry/rest/update.go, pkg/registry/generic/registry/store.go;
kubernetes/apiextensions-apiserver: pkg/registry/customresource/strategy.go, status_strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ironbell.api.client import BadRequest
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.fielderrors import invalid
from ironbell.apiserver.managedfields import ownership
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.verbs.bodies import body_of, check_address, decode_mapping, require_name, shown_object, storable
from ironbell.apiserver.verbs.duplicates import NO_FAULTS, TextFaults
from ironbell.apiserver.verbs.prepare import (
    ErrorFor,
    is_spec_equal,
    keep_server_fields,
    lost_in_decoding,
    shape,
    unusable_object,
    validate,
)

ATTEMPTS = 8
_ANY_VERSION = (None, "", "0")

Object = dict[str, Any]
Change = Callable[[Object, Object], Object]
"""Returns the new object, from the old one and a copy of it that may be changed."""


async def replace_object(context: Context, request: Request, body: bytes) -> bytes:
    """PUT: the whole object, or its status."""
    value = decode_mapping(body, kind=request.info.kind)
    faults = lost_in_decoding(request, body, value)
    require_name(request, value)
    check_address(request, value)
    encoded = msgspec.json.encode(value)

    def change(old: Object, scratch: Object) -> Object:
        new: Object = msgspec.json.decode(encoded)
        meta = new["metadata"]
        if meta.get("resourceVersion") in _ANY_VERSION:
            if request.info.updates_need_version:
                fault = invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise status.invalid_resource(request.info, request.name, error=fault)
            meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
            uid = old["metadata"]["uid"]
            detail = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {uid}"
            raise status.conflict(request.info, request.name, detail=detail)
        return new

    return await update(context, request, change, faults=faults)


async def update(
    context: Context,
    request: Request,
    change: Change,
    *,
    error_for: ErrorFor = unusable_object,
    tracked: bool = False,
    faults: TextFaults = NO_FAULTS,
) -> bytes:
    """Change an object; decided again if another writer was first and the change allows it.

    `error_for` creates the error for a new object that is not valid for its kind; `tracked` means that the change sets
    `managedFields` itself; `faults` are those of the new object's text.

    Raises:
        NotFound: the object does not exist.
        Conflict: the change names a resourceVersion that is not the latest, or other writers change the object again
            and again.
        Invalid: the new object is not valid.
    """
    for _ in range(ATTEMPTS):
        current = context.store.latest(request.info.store_key, request.key)
        if current is None:
            raise status.not_found(request.info, request.name)
        old, scratch = await shown_object(request.info, current), await shown_object(request.info, current)
        if context.store.latest(request.info.store_key, request.key) is not current:
            continue
        new = change(old, scratch)
        _check_identity(request, new, old, error_for=error_for)
        new = _merge_parts(request, new, old)
        shape(request, new, error_for=error_for, faults=faults)
        keep_server_fields(new, old)
        if context.admission.concerns(request.info):
            new = await _mutated(context, request, new, old=old)
            if context.store.latest(request.info.store_key, request.key) is not current:
                continue
        answer = await _store(context, request, new, old=old, current=current, tracked=tracked)
        if answer is not None:
            return answer
    raise status.conflict(request.info, request.name)


def _check_identity(request: Request, new: Object, old: Object, *, error_for: ErrorFor) -> None:
    """Check that the new object has the identity of the old one, and its latest version if it names one."""
    info, meta, old_meta = request.info, new.get("metadata"), old["metadata"]
    if info.custom and new.get("kind") != info.kind:
        raise status.wrong_kind(info, request.name, str(new.get("kind", "")))
    if (new.get("apiVersion"), new.get("kind")) != (info.api_version, info.kind):
        detail = (
            f"the result is a {new.get('kind')} of {new.get('apiVersion')}, and not a {info.kind} of {info.api_version}"
        )
        raise error_for(request, new, detail)
    if not isinstance(meta, dict):
        raise error_for(request, new, f"json: cannot unmarshal metadata into Go struct field {info.kind}.metadata")
    if meta.get("name", old_meta["name"]) != old_meta["name"]:
        raise BadRequest(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({old_meta['name']})"
        )
    if meta.get("namespace", old_meta.get("namespace")) != old_meta.get("namespace"):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    requested = meta.get("resourceVersion")
    if requested not in _ANY_VERSION and requested != old_meta["resourceVersion"]:
        if not str(requested).isdecimal():
            raise BadRequest(f'strconv.ParseUint: parsing "{requested}": invalid syntax')
        raise status.conflict(info, request.name)
    for field in ("uid", "deletionTimestamp"):
        if meta.get(field) and meta[field] != old_meta.get(field):
            fault = invalid(f"metadata.{field}", meta[field], "field is immutable")
            raise status.invalid(info, request.name, errors=[fault])


def _merge_parts(request: Request, new: Object, old: Object) -> Object:
    """A write to an object leaves its status alone; a write to its status leaves all else alone."""
    if request.subresource == "status":
        merged = {**old, "metadata": _status_metadata(request, new, old)}
        merged.pop("status", None)
        if new.get("status") is not None:
            merged["status"] = new["status"]
        if "managedFields" in new["metadata"]:
            merged["metadata"]["managedFields"] = new["metadata"]["managedFields"]
        return merged
    if request.subresource == "finalize":
        return {**old, "metadata": dict(old["metadata"]), "spec": new.get("spec", {})}
    if request.info.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def _status_metadata(request: Request, new: Object, old: Object) -> Object:
    """The metadata after a write to the status: of most built-in kinds it is written, too."""
    kept = request.info.kept_by_status
    if kept is None:
        return dict(old["metadata"])
    meta = {name: value for name, value in new["metadata"].items() if name not in kept}
    return meta | {name: old["metadata"][name] for name in kept if name in old["metadata"]}


async def _mutated(context: Context, request: Request, new: Object, *, old: Object) -> Object:
    changed = await context.admission.mutate(_review(request, new, old))
    if changed is not None and changed is not new:
        new = _merge_parts(request, changed, old)
        shape(request, new)
        keep_server_fields(new, old)
    return new


def _review(request: Request, new: Object, old: Object) -> AdmissionRequest:
    return AdmissionRequest(
        Operation.UPDATE, request.info, request.namespace, request.name, request.identity, new, old,
        request.subresource, request.options.dry_run,
    )  # fmt: skip


async def _store(
    context: Context, request: Request, new: Object, *, old: Object, current: Entry, tracked: bool
) -> bytes | None:
    """Return the response's body; None if another writer was first while a webhook converted."""
    info = request.info
    if request.subresource in ("", "scale"):
        info.strategy.prepare_update(new, old)
    if info.generations and not is_spec_equal(request, new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    await validate(request, new, old)
    if context.admission.concerns(info):
        await context.admission.review(_review(request, new, old))
    if not tracked:
        ownership.track(request, new, old, now=context.clock.now())
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    ends = is_finished(new)
    if new == old and not ends:
        await context.store.settle(current.version)
        return await body_of(info, current)
    if request.options.dry_run:
        await context.store.settle(current.version)
        return msgspec.json.encode(new)
    stored = await storable(info, new)
    if context.store.latest(info.store_key, request.key) is not current:
        return None
    write = context.store.remove if ends else context.store.put
    entry = await write(info.store_key, request.key, stored)
    return await body_of(info, entry)


def is_finished(value: Object) -> bool:
    """Return whether an object is being deleted and nothing holds it any more."""
    meta = value["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    return not (is_namespace(value) and value.get("spec", {}).get("finalizers"))


def is_namespace(value: Object) -> bool:
    """Return whether an object is a namespace, which is held by finalizers in its spec as well."""
    return (value["kind"], value["apiVersion"]) == ("Namespace", "v1")
