"""In the embedded API: a Hardware that is being held gets the finalizer of its hold in the same write, so that it
cannot be deleted in between. On a cluster, the Hardware controller adds it a moment later.
"""

from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.apiserver.admission import Admission, AdmissionRequest
from ironbell.apiserver.resources import ResourceInfo
from ironbell.contract.servers.claim import HOLD_FINALIZER
from ironbell.provisioner.deletion import lacks_hold_finalizer


def protect_held_servers(admission: Admission) -> None:
    """Complete every write of a Hardware."""
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
