"""The deletion of a server's Hardware: its prerequisites, and warnings for the user who deletes it. Pure.

A held Hardware is not deleted, because its hold would be lost, and the server could be claimed as soon as it is added
again. A finalizer keeps the Hardware while the hold is set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ironbell.api.capt.names import FINALIZER, LEGACY_FINALIZER
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import HELD, HOLD_FINALIZER, claim_of
from ironbell.contract.servers.wipe_due import WIPE_DUE, wipe_due
from ironbell.kube.finalizers import is_deleting

_KEEP: Final = frozenset({HOLD_FINALIZER, FINALIZER, LEGACY_FINALIZER})
"""Finalizers that keep a held Hardware; those of a claim keep one that was held during its deletion."""
DELETION_WAITS_FOR: Final = "ironbell.dev/deletion-waits-for"
"""Annotation on a Hardware that is being deleted: the owner that has to release the server, or the hold to remove."""


def deletion_waits_for(hardware: Hardware) -> str:
    """Return the prerequisites of the deletion of a Hardware; empty if none is known."""
    if ANNOTATION_DELETE_FOR_MOVE in hardware.metadata.annotations:
        return ""
    prerequisites = []
    claim = claim_of(hardware)
    if claim is not None and claim.is_reservation:
        prerequisites.append("the complete wipe of its disks, which is due")
    elif claim is not None and hardware.metadata.finalizers:
        prerequisites.append(f"{claim} to release the server")
    if waits_for_hold(hardware):
        reason = hardware.metadata.annotations[HELD] or "no reason given"
        prerequisites.append(f"its hold to be removed ({reason}): remove annotation {HELD}")
    return ", and for ".join(prerequisites)


def waits_for_hold(hardware: Hardware) -> bool:
    """Return whether the deletion of a Hardware waits, or would wait, until its hold is removed."""
    return HELD in hardware.metadata.annotations and not _KEEP.isdisjoint(hardware.metadata.finalizers)


def lacks_hold_finalizer(annotations: Mapping[str, Any], finalizers: Collection[Any]) -> bool:
    """Return whether a Hardware that is not being deleted is held, and its deletion would not wait.

    A Hardware that is deleted because it was moved needs none: its copy is held.
    """
    is_held = HELD in annotations and ANNOTATION_DELETE_FOR_MOVE not in annotations
    return is_held and HOLD_FINALIZER not in finalizers


def hold_finalizers(hardware: Hardware) -> list[str]:
    """Return the finalizers that a Hardware must have, with or without a hold.

    A claim's finalizer on an unclaimed Hardware was kept for a hold when the server was released.
    """
    annotations, current = hardware.metadata.annotations, hardware.metadata.finalizers
    if is_deleting(hardware):
        if HELD in annotations and ANNOTATION_DELETE_FOR_MOVE not in annotations:
            return current
        is_moved, is_due = ANNOTATION_DELETE_FOR_MOVE in annotations, WIPE_DUE in annotations
        released = claim_of(hardware) is None and not is_moved and not is_due
        done = _KEEP if released else {HOLD_FINALIZER}
        return [name for name in current if name not in done]
    if lacks_hold_finalizer(annotations, current):
        return [*current, HOLD_FINALIZER]
    return current if HELD in annotations else [name for name in current if name != HOLD_FINALIZER]


def deletion_warnings(hardware: Hardware) -> list[str]:
    """Return warnings about prerequisites of the deletion of this Hardware, and about what is lost with it.

    A move to another API deletes objects that it has copied, so nothing is lost.
    """
    annotations = hardware.metadata.annotations
    if ANNOTATION_DELETE_FOR_MOVE in annotations:
        return []
    warnings, where = [], "/".join(hardware.key)
    claim, due = claim_of(hardware), wipe_due(hardware)
    if claim is not None and claim.is_reservation:
        warnings.append(
            f'Hardware "{where}" is reserved for {due or claim}, and a complete wipe of its disks is due: it stays '
            "until they are wiped, which begins now."
        )
    elif claim is not None:
        warnings.append(
            f'Hardware "{where}" is in use by {claim}: it stays until that has released the server. Delete the owner, '
            "or the Machine that it belongs to."
        )
    if HELD in annotations:
        reason = annotations[HELD] or "no reason given"
        if HOLD_FINALIZER in hardware.metadata.finalizers:
            effect = f'it stays until the hold is removed. Remove annotation "{HELD}" if the server may be forgotten.'
        else:
            effect = (
                "its deletion does not wait for the hold, which is lost with it. Set annotation "
                f'"{HELD}" on a new Hardware for this server as well.'
            )
        warnings.append(f'Hardware "{where}" is held ({reason}): {effect}')
    return warnings
