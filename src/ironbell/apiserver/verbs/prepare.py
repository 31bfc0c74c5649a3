"""Preparation of objects for storage: cleaning, pruning, defaulting and validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from ironbell.api.client import ApiError, BadRequest
from ironbell.apiserver import status
from ironbell.apiserver.context import Request
from ironbell.apiserver.fielderrors import FieldError, forbidden
from ironbell.apiserver.metadata import STANDARD_FINALIZERS, clean, validate_metadata
from ironbell.apiserver.schema.validate import check_resource_types
from ironbell.apiserver.threads import evaluated
from ironbell.apiserver.verbs.duplicates import NO_FAULTS, TextFaults, text_faults
from ironbell.apiserver.warnings import warn

_SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


ErrorFor = Callable[[Request, dict[str, Any], str], ApiError]
"""Creates the error for a value that is not valid for its kind, from a reason."""


def unusable_object(request: Request, value: dict[str, Any], detail: str) -> ApiError:
    """The error for a whole object that a client sent."""
    info = request.info
    return BadRequest(f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: {detail}')


def unusable_patch(request: Request, value: dict[str, Any], detail: str) -> ApiError:
    """The error for the result of a patch; a Secret is not shown."""
    shown = "" if request.info.resource == "secrets" else msgspec.json.encode(value).decode()
    return status.invalid_patch(shown, detail)


def lost_in_decoding(request: Request, body: bytes, value: dict[str, Any]) -> TextFaults:
    """The duplicate fields of a text, if the client requests field validation: `faults` of `shape`."""
    if request.options.field_validation not in ("Strict", "Warn"):
        return NO_FAULTS
    if request.options.set_twice:
        return TextFaults(lines=request.options.set_twice)
    return text_faults(body, value)


def shape(
    request: Request, value: dict[str, Any], *, error_for: ErrorFor = unusable_object, faults: TextFaults = NO_FAULTS
) -> None:
    """Drop unknown fields and set defaults, in place; `faults` are those of the text.

    Raises:
        ApiError: the error of `error_for`, if a value has the wrong type, or if strict validation is requested and
            there are unknown fields.
        BadRequest: the metadata is malformed.
    """
    validation = request.options.field_validation
    if not request.info.custom:
        # Built-in kinds are typed: values of the wrong type are rejected before any other check.
        misfit = request.info.compiled.misfit(value)
        if misfit:
            raise error_for(request, value, misfit)
    unknown, dropped = clean(value), request.info.compiled.prune(value)
    unknown += sorted(dropped) if request.info.custom else dropped
    # The text of a patch is not the object's.
    in_order = not request.info.custom and error_for is not unusable_patch
    problems = faults.with_unknown(unknown, in_text_order=in_order)
    if problems and validation == "Strict":
        raise error_for(request, value, faults.error_message(problems))
    if validation == "Warn":
        for fault in problems:
            warn(fault)
    if request.info.deprecation_warning:
        warn(request.info.deprecation_warning)
    request.info.compiled.default(value)


async def validate(request: Request, new: dict[str, Any], old: dict[str, Any] | None) -> None:
    """Check an object that is about to be stored.

    Raises:
        Invalid: the object has errors; all are reported.
    """
    info = request.info
    meta = new["metadata"]
    # Definitions are checked by another part of Kubernetes than the other kinds, which accepts any finalizer.
    core = not info.custom and info.group != "apiextensions.k8s.io"
    errors = validate_metadata(meta, namespaced=info.namespaced, name_rule=info.name_rule, core=core)
    if not core:
        _warn_of_finalizers(meta.get("finalizers", ()), old["metadata"].get("finalizers", ()) if old else ())
    if old is not None:
        errors += _validate_finalizers(meta, old["metadata"])
    if info.custom:
        errors += check_resource_types(new)
    errors += await evaluated(partial(info.compiled.validate, new, old))
    errors += info.strategy.validate(new, old)
    if errors:
        raise status.invalid(info, meta.get("name", ""), errors=errors)


def _warn_of_finalizers(finalizers: Sequence[str], previous: Sequence[str]) -> None:
    for name in finalizers:
        if "/" not in name and name not in STANDARD_FINALIZERS and name not in previous:
            detail = (
                "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            )
            warn(f'metadata.finalizers: "{name}": {detail}')


def _validate_finalizers(meta: dict[str, Any], old_meta: dict[str, Any]) -> list[FieldError]:
    if "deletionTimestamp" not in old_meta:
        return []
    added = sorted(set(meta.get("finalizers", ())) - set(old_meta.get("finalizers", ())))
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    detail = (
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + listed + "}"
    )
    return [forbidden("metadata.finalizers", detail)]


def keep_server_fields(new: dict[str, Any], old: dict[str, Any]) -> None:
    """Put back the metadata that only the server sets."""
    meta, old_meta = new["metadata"], old["metadata"]
    for name in _SERVER_FIELDS:
        if name in old_meta:
            meta[name] = old_meta[name]
        else:
            meta.pop(name, None)
    meta["name"] = old_meta["name"]
    if "namespace" in old_meta:
        meta["namespace"] = old_meta["namespace"]


def is_spec_equal(request: Request, new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether nothing changed that increments `metadata.generation`."""
    apart = {"metadata", "status"} if request.info.has_status else {"metadata"}
    names = (new.keys() | old.keys()) - apart
    return all(name in new and name in old and new[name] == old[name] for name in names)
