"""Delete: set the deletionTimestamp, or remove; one object, or all that a selector matches.

Source: kubernetes/apiserver: pkg/registry/rest/delete.go, pkg/registry/generic/registry/store.go,
pkg/admission/plugin/namespace/lifecycle/admission.go.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from ironbell.api.client import ApiError, Conflict, ListOptions, NotFound, Page, Preconditions, Propagation
from ironbell.apiserver import status
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.verbs.bodies import body_of, shown_object, storable
from ironbell.apiserver.verbs.lists import list_entries
from ironbell.apiserver.verbs.update import ATTEMPTS, is_finished, is_namespace
from ironbell.base.clock import rfc3339

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
_COLLECTION_WIDTH = 64
_LASTING_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
NO_PRECONDITIONS = Preconditions()
_EVERYTHING = ListOptions()
_PROPAGATION_FINALIZERS = {Propagation.ORPHAN: ORPHAN_FINALIZER, Propagation.FOREGROUND: FOREGROUND_FINALIZER}


async def delete(
    context: Context, request: Request, *, preconditions: Preconditions, propagation: Propagation
) -> bytes:
    """Delete an object, or set its deletionTimestamp if finalizers hold it.

    Returns the object that is being deleted, or the final `Status`.

    Raises:
        NotFound: the object does not exist.
        Forbidden: the object is a namespace that must stay, or admission rejects the deletion.
        Conflict: a precondition does not hold, or other writers change the object again and again.
    """
    info = request.info
    for _ in range(ATTEMPTS):
        current = context.store.latest(info.store_key, request.key)
        if current is None:
            raise status.not_found(info, request.name)
        check_preconditions(request, current, preconditions)
        value = await shown_object(info, current)
        if context.store.latest(info.store_key, request.key) is not current:
            continue
        if is_namespace(value) and request.name in _LASTING_NAMESPACES:
            raise status.forbidden(info, request.name, detail="this namespace may not be deleted")
        if context.admission.concerns(info):
            await _admit(context, request, value)
            if context.store.latest(info.store_key, request.key) is not current:
                continue
        answer = await _carry_out(context, request, value, current=current, propagation=propagation)
        if answer is not None:
            return answer
    raise status.conflict(info, request.name)


def check_preconditions(request: Request, current: Entry, preconditions: Preconditions) -> None:
    """Reject the call if the object has another uid or version than the preconditions.

    Raises:
        Conflict: a precondition does not hold.
    """
    if preconditions.uid and preconditions.uid != current.uid:
        detail = (
            f"the UID in the precondition ({preconditions.uid}) does not match the UID in record ({current.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.stale(request.info, request.name, detail=detail)
    if preconditions.resource_version and preconditions.resource_version != str(current.version):
        detail = (
            f"the ResourceVersion in the precondition ({preconditions.resource_version}) does not match the "
            f"ResourceVersion in record ({current.version}). The object might have been modified"
        )
        raise status.stale(request.info, request.name, detail=detail)


async def _admit(context: Context, request: Request, value: dict[str, Any]) -> None:
    review = AdmissionRequest(
        Operation.DELETE, request.info, request.namespace, request.name, request.identity, None, value,
        dry_run=request.options.dry_run,
    )  # fmt: skip
    await context.admission.mutate(review)
    await context.admission.review(review)


async def _carry_out(
    context: Context, request: Request, value: dict[str, Any], *, current: Entry, propagation: Propagation
) -> bytes | None:
    """Return the response's body; None if another writer was first while a webhook converted."""
    info = request.info
    original = msgspec.json.encode(value)
    before_value = {**value, "metadata": dict(value["metadata"])}
    info.strategy.prepare_delete(value)
    mark_deleted(context, value, propagation=propagation)
    done = status.success(info, name=request.name, uid=current.uid)
    if is_finished(value):
        if request.options.dry_run:
            await context.store.settle(current.version)
        else:
            stored = await storable(info, value)
            if context.store.latest(info.store_key, request.key) is not current:
                return None
            await context.store.remove(info.store_key, request.key, stored)
        return msgspec.json.encode(before_value if info.answers_deleted else done)
    after = msgspec.json.encode(value)
    if after == original or request.options.dry_run:
        await context.store.settle(current.version)
        return after
    stored = await storable(info, value)
    if context.store.latest(info.store_key, request.key) is not current:
        return None
    entry = await context.store.put(info.store_key, request.key, stored)
    return await body_of(info, entry)


def mark_deleted(context: Context, value: dict[str, Any], *, propagation: Propagation) -> None:
    """Set the deletionTimestamp and the finalizer that the propagation needs, in place."""
    meta = value["metadata"]
    finalizers = [name for name in meta.get("finalizers", ()) if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    needed = _PROPAGATION_FINALIZERS.get(propagation)
    if needed:
        finalizers.append(needed)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = rfc3339(context.clock.now())
        if not is_namespace(value):
            meta["deletionGracePeriodSeconds"] = 0
        if "generation" in meta:
            meta["generation"] += 1
        if is_namespace(value):
            value.setdefault("status", {})["phase"] = "Terminating"


async def delete_collection(
    context: Context,
    request: Request,
    *,
    options: ListOptions = _EVERYTHING,
    propagation: Propagation = Propagation.BACKGROUND,
    preconditions: Preconditions = NO_PRECONDITIONS,
) -> Page:
    """Delete the objects of a list, and return the list; objects that others delete meanwhile are skipped.

    Raises:
        ApiError: the first failed deletion; objects that were deleted before stay deleted.
    """
    page, chosen = await list_entries(context, request, options)

    async def delete_one(entry: Entry) -> ApiError | None:
        object_request = msgspec.structs.replace(request, namespace=entry.namespace, name=entry.name)
        own_preconditions = replace(preconditions, uid=preconditions.uid or entry.uid)
        try:
            await delete(context, object_request, preconditions=own_preconditions, propagation=propagation)
        except (NotFound, Conflict) as error:
            is_rejected = isinstance(error, Conflict) and preconditions != NO_PRECONDITIONS
            return error if is_rejected else await left_to_others()
        except ApiError as error:
            return error
        return None

    async def left_to_others() -> ApiError | None:
        try:
            await context.store.settle()
        except ApiError as error:
            return error
        return None

    for start in range(0, len(chosen), _COLLECTION_WIDTH):
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(delete_one(entry), name=f"delete {entry.resource}/{entry.name}")
                for entry in chosen[start : start + _COLLECTION_WIDTH]
            ]
        errors = [error for error in (task.result() for task in tasks) if error is not None]
        if errors:
            raise errors[0]
    return page
