"""What a person should know who deletes the Hardware of a server."""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.hardware_claim import HELD, claim_of

DELETION_WAITS_FOR: Final = "ironbell.dev/deletion-waits-for"
"""Annotation on a Hardware that is being deleted: who has to release the server first."""


def deletion_waits_for(hardware: Hardware) -> str:
    """Return what the deletion of a Hardware waits for, or "" if it waits for nothing that is known."""
    if ANNOTATION_DELETE_FOR_MOVE in hardware.metadata.annotations:
        return ""
    claim = claim_of(hardware)
    if claim is not None and hardware.metadata.finalizers:
        return f"{claim} to release the server"
    return ""


def deletion_warnings(hardware: Hardware) -> list[str]:
    """Return what the deletion of this Hardware waits for, and what is lost with it.

    A move to another API deletes what it has copied there: nothing is lost.
    """
    annotations = hardware.metadata.annotations
    if ANNOTATION_DELETE_FOR_MOVE in annotations:
        return []
    found, where = [], "/".join(hardware.key)
    claim = claim_of(hardware)
    if claim is not None:
        found.append(
            f'Hardware "{where}" is in use by {claim}: it stays until that has released the server. Delete the owner, '
            "or the Machine that it belongs to."
        )
    if HELD in annotations:
        reason = annotations[HELD] or "no reason given"
        found.append(
            f'Hardware "{where}" is held ({reason}), which is lost with it: a Hardware that is created anew for this '
            f'server can be claimed. Set annotation "{HELD}" on that as well.'
        )
    return found
