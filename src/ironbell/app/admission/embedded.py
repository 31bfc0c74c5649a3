"""Admission in the embedded API: rights for references into other namespaces, and finalizers of held servers."""

from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.apiserver import status
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, Authorizer
from ironbell.apiserver.admission import Admission, AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.warnings import warn
from ironbell.app.admission.reference_rules import Holds, Write, concerns, reviewed
from ironbell.contract.crossing import Access
from ironbell.contract.servers.claim import HOLD_FINALIZER
from ironbell.provisioner.deletion import lacks_hold_finalizer


def check_references(admission: Admission, authorizer: Authorizer) -> None:
    """Check every write of an object that may refer to other namespaces."""

    async def review(request: AdmissionRequest) -> None:
        if request.subresource or request.new is None or request.operation is Operation.DELETE:
            return
        info, identity = request.info, request.identity
        write = Write(info.group, info.plural, request.namespace, identity.user, request.new, request.old)
        verdict = await reviewed(write, _holds(authorizer, identity))
        for text in verdict.warnings:
            warn(text)
        if verdict.forbidden:
            raise status.forbidden(info, request.name, detail=verdict.forbidden)

    admission.validating(_concerns, review)


def _holds(authorizer: Authorizer, identity: Identity) -> Holds:
    async def holds(right: Access) -> bool:
        attributes = Attributes(right.verb, right.group, right.resource, right.namespace, right.name)
        return authorizer.decide(identity, attributes).allowed

    return holds


def _concerns(info: ResourceInfo) -> bool:
    return concerns(info.group, info.plural)


def protect_held_servers(admission: Admission) -> None:
    """Add the finalizer of a hold in the write that holds a Hardware, so that it cannot be deleted in between.

    On a cluster, the Hardware controller adds it a moment later.
    """
    admission.mutating(_is_hardware, _protect)


def _is_hardware(info: ResourceInfo) -> bool:
    return (info.group, info.plural) == (HARDWARE.group, HARDWARE.plural)


async def _protect(request: AdmissionRequest) -> dict[str, Any] | None:
    new = request.new
    if new is None or request.subresource:
        return None
    metadata = new.get("metadata")
    if not isinstance(metadata, dict) or "deletionTimestamp" in (request.old or new)["metadata"]:
        return None
    annotations, finalizers = metadata.get("annotations") or {}, metadata.get("finalizers") or []
    if not isinstance(annotations, dict) or not isinstance(finalizers, list):
        return None  # the schema rejects it
    if not lacks_hold_finalizer(annotations, finalizers):
        return None
    return {**new, "metadata": {**metadata, "finalizers": [*finalizers, HOLD_FINALIZER]}}
