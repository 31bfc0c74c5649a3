"""Reserved servers: which there are for a Cluster, whom they wake, and ending a reservation for another Cluster. Pure.

See `provisioner.deferral` for the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue, cluster_identity
from ironbell.kube.decision import Action, emit, patch
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.deferral import ended, is_reserved_for, reservation_of, yields_in_s
from ironbell.provisioner.health import Severity
from ironbell.provisioner.lifecycle.selection import Bmcs, Verdict, Wish, verdict, verdicts
from ironbell.workload.clusterkey import ClusterKey

RESERVED_FOR: Final[Index[Hardware]] = Index(
    HARDWARE,
    "reserved-for",
    lambda hardware: [due.owner] if (due := reservation_of(hardware)) is not None and not due.ended else [],
)
"""Servers that a Cluster may claim and nobody else, by the Cluster's identity."""
RESERVED: Final[Index[Hardware]] = Index(
    HARDWARE, "reserved", lambda hardware: ["reserved"] if reservation_of(hardware) is not None else []
)
"""Servers that no machine has and on which a complete wipe is due."""


def reserved_servers(cache: Cache, cluster: ClusterKey | None, *, of_all: bool) -> tuple[Hardware, ...]:
    """Return the servers that are reserved for a Cluster, or for any."""
    if of_all:
        return tuple(cache.indexed(RESERVED, "reserved"))
    if cluster is None:
        return ()
    return tuple(cache.indexed(RESERVED_FOR, cluster_identity(*cluster.key, cluster.uid)))


def own(wished: Wish, reserved: Iterable[Hardware], bmcs: Bmcs) -> list[Verdict]:
    """The reserved servers of the wish's Cluster that fit and that little speaks against, the best first."""
    found = [each for each in reserved if is_reserved_for(each, wished.cluster)]
    return [each for each in verdicts(wished, found, bmcs) if each.fits and each.severity < Severity.DOUBTFUL]


def became_reserved(_old: Hardware | None, new: Hardware | None) -> bool:
    """Whether the machines of one Cluster may claim it now."""
    due = reservation_of(new) if new is not None else None
    return due is not None and new is not None and not due.ended and HELD not in new.metadata.annotations


def yielding(
    wished: Wish, place: int, reserved: Sequence[Hardware], bmcs: Bmcs, now: datetime
) -> tuple[Hardware | None, float | None]:
    """The server whose reservation is to end for the machine at this place of the queue; or in how long to look again.

    Servers whose reservation has ended come first: what is being wiped already will do.
    """
    found: list[tuple[bool, float, Verdict]] = []
    for hardware in reserved:
        due = reservation_of(hardware)
        if due is None or due.owner == wished.cluster or HELD in hardware.metadata.annotations or is_deleting(hardware):
            continue
        seen = verdict(wished, hardware, bmcs, ignores_reservation=True)
        if seen.fits:
            found.append((not due.ended, 0.0 if due.ended else yields_in_s(due, now), seen))
    found.sort(key=lambda item: (item[0], item[1], item[2].rank))
    if place >= len(found):
        return None, None
    is_reserved, in_s, seen = found[place]
    if not is_reserved:
        return None, None
    return (seen.hardware, None) if in_s <= 0 else (None, in_s)


def end(hardware: Hardware, due: WipeDue, why: str, now: datetime) -> Sequence[Action]:
    """The one write that ends a reservation; the complete wipe follows from it."""
    record = ended(due, why, now)
    message = f"The disks of Hardware {'/'.join(hardware.key)} are to be wiped completely, because {why}."
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": {WIPE_DUE: record.encoded}}}, locked=True)
    return write, emit(HARDWARE, hardware, reason="ReservationEnded", message=message)


def is_available_to_somebody(hardware: Hardware) -> bool:
    """Whether it is free, or reserved for a Cluster that may claim it."""
    due = reservation_of(hardware)
    return claim_of(hardware) is None if due is None else not due.ended
