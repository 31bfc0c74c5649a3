"""Complete wipes that are deferred: the reservation of a server, its duration, and the due wipe after a release. Pure.

A server with `ironbell.dev/wipe: deferred` is wiped quickly at release and reserved for its Cluster. The reservation
ends when the Cluster is deleted, when the Hardware is, or when it has lasted `RESERVED_S` and a Machine of another
Cluster finds no other server that fits. Then the disks are wiped completely, and the server is available.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339, rfc3339_micro
from ironbell.contract.servers.claim import claim_of
from ironbell.contract.servers.wipe_due import WipeDue, cluster_identity, wipe_due
from ironbell.kube.finalizers import is_deleting

RESERVED_S: Final = 900.0
"""Minimum duration of a reservation while its Cluster exists: a rolling upgrade uses the server within minutes."""
MOVE_S: Final = 30.0
"""Delay of a complete wipe after the end of the reservation: a move to another API deletes Clusters before it deletes
the Hardware that went along."""


def due_after(hardware: Hardware, new: WipeDue, *, is_deferred: bool, was_written: bool, wiped: bool) -> WipeDue | None:
    """The wipe that is due once a machine has released this server.

    Args:
        hardware: the server.
        new: the wipe that would be due for this machine.
        is_deferred: whether the machine's wipe policy defers the complete wipe.
        was_written: whether its installation may have written to the disks.
        wiped: whether a complete wipe has been proven.
    """
    if wiped:
        return None
    known = wipe_due(hardware)
    if known is not None:
        # It became due for an earlier machine of the Cluster, and stays due after a quick wipe or an untouched server.
        keep = [*known.keep, *(disk for disk in new.keep if disk not in known.keep)]
        return msgspec.structs.replace(
            known, since=new.since, keep=keep, ended="", ended_at="", attempt=1, power_off_attempt=1
        )
    return new if is_deferred and was_written else None


def reservation_of(hardware: Hardware) -> WipeDue | None:
    """The due wipe of a reserved server; None if a machine has claimed the server, or no wipe is due.

    A server without a claim is reserved as well: its labels were removed by hand, and the wipe is still due.
    """
    claim = claim_of(hardware)
    return wipe_due(hardware) if claim is None or claim.is_reservation else None


def is_reserved_for(hardware: Hardware, cluster: str) -> bool:
    """Return whether machines of a Cluster (`cluster_identity`) may claim a reserved server."""
    due = reservation_of(hardware)
    return due is not None and bool(cluster) and due.owner == cluster and not due.ended


def end_of_reservation(hardware: Hardware, due: WipeDue, cluster: Cluster | None) -> str:
    """The reason for which the reservation ends regardless of waiting owners; empty if it does not."""
    if is_deleting(hardware):
        return "its Hardware is being deleted"
    if cluster is None or identity(cluster) != due.owner:
        return f"{due} was deleted"
    if is_deleting(cluster) and ANNOTATION_DELETE_FOR_MOVE not in cluster.metadata.annotations:
        return f"{due} is being deleted"
    return ""


def without_reservation(due: WipeDue, reason: str, now: datetime) -> WipeDue:
    """The record with which the complete wipe begins."""
    return msgspec.structs.replace(due, ended=reason, ended_at=rfc3339_micro(now), attempt=1, power_off_attempt=1)


def begins_in_s(due: WipeDue, now: datetime) -> float:
    """Seconds until the complete wipe begins, once the reservation has ended."""
    return (_time(due.ended_at, now) + timedelta(seconds=MOVE_S) - now).total_seconds()


def yields_in_s(due: WipeDue, now: datetime) -> float:
    """Seconds until another Cluster that finds no other server may end the reservation of this one; 0 if it may now."""
    return max(0.0, (_time(due.since, now) + timedelta(seconds=RESERVED_S) - now).total_seconds())


def identity(cluster: Cluster | None) -> str:
    """A Cluster by name and UID; empty if there is none."""
    return cluster_identity(*cluster.key, cluster.metadata.uid) if cluster is not None else ""


def _time(text: str, now: datetime) -> datetime:
    """A time of the record; an invalid one is in the past."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return now - timedelta(days=1)
