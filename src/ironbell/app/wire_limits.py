"""What `wire` may change within the objects that it may patch: annotations and a Workflow's status, nothing else.

Roles speak of whole objects. The process that reads packets from machines must not be able to let a machine netboot or
to give it another template, so the embedded API compares before and after of each of its writes.
"""

from __future__ import annotations

from typing import Any

from ironbell.api.client import Forbidden
from ironbell.apiserver.admission import Admission, AdmissionRequest
from ironbell.apiserver.resources import ResourceInfo
from ironbell.app.roles import WIRE, service_account_user
from ironbell.app.wire_config import SERVERS as NAMES

RESOURCES = {"hardware", "workflows"}
SERVERS = {WIRE, *(service_account_user(f"ironbell-{name}") for name in NAMES)}
"""Accounts of what reads packets from machines, together or each for itself."""


def limit_wire(admission: Admission) -> None:
    """Install the limit."""
    admission.validating(_concerns, review)


async def review(request: AdmissionRequest) -> None:
    """Refuse a write of `wire` that goes further.

    Raises:
        Forbidden: it changes more than annotations, outside of a subresource.
    """
    if request.identity.user not in SERVERS or request.subresource or request.old is None or request.new is None:
        return
    if _without_annotations(request.old) != _without_annotations(request.new):
        user, plural = request.identity.user, request.info.plural
        raise Forbidden(f"{user} may change annotations of {plural} only, not the content of {request.name}")


def _concerns(info: ResourceInfo) -> bool:
    return info.group == "tinkerbell.org" and info.plural in RESOURCES


def _without_annotations(obj: dict[str, Any]) -> dict[str, Any]:
    kept = {"annotations", "managedFields", "resourceVersion", "generation"}
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name not in kept}
    return {**obj, "metadata": metadata}
