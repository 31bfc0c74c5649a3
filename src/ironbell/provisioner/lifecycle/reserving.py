"""Reserved servers: those of a Cluster, and the end of a reservation for the benefit of another Cluster. Pure.

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
from ironbell.provisioner.deferral import is_reserved_for, reservation_of, without_reservation, yields_in_s
from ironbell.provisioner.health import Severity
from ironbell.provisioner.lifecycle.selection import Bmcs, Candidate, Wish, verdict, verdicts
from ironbell.workload.clusterkey import ClusterKey

RESERVED_FOR: Final[Index[Hardware]] = Index(
    HARDWARE,
    "reserved-for",
    lambda hardware: [due.owner] if (due := reservation_of(hardware)) is not None and not due.ended else [],
)
"""Servers that only one Cluster may claim, by the Cluster's identity."""
RESERVED: Final[Index[Hardware]] = Index(
    HARDWARE, "reserved", lambda hardware: ["reserved"] if reservation_of(hardware) is not None else []
)
"""Unclaimed servers on which a complete wipe is due."""


def reserved_servers(cache: Cache, cluster: ClusterKey | None, *, of_all: bool) -> tuple[Hardware, ...]:
    """Return the servers that are reserved for a Cluster, or for any."""
    if of_all:
        return tuple(cache.indexed(RESERVED, "reserved"))
    if cluster is None:
        return ()
    return tuple(cache.indexed(RESERVED_FOR, cluster_identity(*cluster.key, cluster.uid)))


def reserved_candidates(wished: Wish, reserved: Iterable[Hardware], bmcs: Bmcs) -> list[Candidate]:
    """The reserved servers of the wish's Cluster that fit without serious concerns, the best first."""
    servers = [hardware for hardware in reserved if is_reserved_for(hardware, wished.cluster)]
    candidates = verdicts(wished, servers, bmcs)
    return [candidate for candidate in candidates if candidate.fits and candidate.severity < Severity.DOUBTFUL]


def became_reserved(_old: Hardware | None, new: Hardware | None) -> bool:
    """Return whether the machines of a Cluster may claim the server now."""
    due = reservation_of(new) if new is not None else None
    return due is not None and new is not None and not due.ended and HELD not in new.metadata.annotations


def yielding(
    wished: Wish, place: int, reserved: Sequence[Hardware], bmcs: Bmcs, now: datetime
) -> tuple[Hardware | None, float | None]:
    """The server whose reservation ends for the machine at this place of the queue, or the seconds until then.

    Servers whose reservation has ended already precede the others, since they will become available.
    """
    candidates: list[tuple[bool, float, Candidate]] = []
    for hardware in reserved:
        due = reservation_of(hardware)
        if due is None or due.owner == wished.cluster or HELD in hardware.metadata.annotations or is_deleting(hardware):
            continue
        candidate = verdict(wished, hardware, bmcs, ignores_reservation=True)
        if candidate.fits:
            candidates.append((not due.ended, 0.0 if due.ended else yields_in_s(due, now), candidate))
    candidates.sort(key=lambda item: (item[0], item[1], item[2].rank))
    if place >= len(candidates) or not candidates[place][0]:
        return None, None
    _, in_s, candidate = candidates[place]
    return (candidate.hardware, None) if in_s <= 0 else (None, in_s)


def end(hardware: Hardware, due: WipeDue, reason: str, now: datetime) -> Sequence[Action]:
    """The write that ends a reservation, which starts the complete wipe."""
    record = without_reservation(due, reason, now)
    name = "/".join(hardware.key)
    message = f"Ended the reservation of Hardware {name}, because {reason}. Its disks will be wiped completely."
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": {WIPE_DUE: record.encoded}}}, locked=True)
    return write, emit(HARDWARE, hardware, reason="ReservationEnded", message=message)


def is_available_to_somebody(hardware: Hardware) -> bool:
    """Return whether the server is unclaimed, or reserved for a Cluster that may claim it."""
    due = reservation_of(hardware)
    return claim_of(hardware) is None if due is None else not due.ended
