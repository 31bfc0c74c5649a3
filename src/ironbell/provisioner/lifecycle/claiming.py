"""The claim of a server for an owner, or the report of why none is available, with the remedy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import rfc3339_micro
from ironbell.contract.servers.claim import claim_patch
from ironbell.kube.decision import Action, Emit, Fields, MergePatch
from ironbell.provisioner.claims_from import remedy, unrestricted
from ironbell.provisioner.deferral import is_reserved_for, reservation_of
from ironbell.provisioner.lifecycle import reserving
from ironbell.provisioner.lifecycle.host import Draft, Step
from ironbell.provisioner.lifecycle.names import (
    CLAIM_ALLOWED,
    HARDWARE_READY,
    NO_HARDWARE,
    QUEUED_IN,
    QUEUED_SINCE,
    State,
)
from ironbell.provisioner.lifecycle.owner import owner_finalizers
from ironbell.provisioner.lifecycle.selection import Candidate, pick, shortage, verdict, verdicts

RECHECK_S: Final = 300.0
"""Interval at which an owner without a server searches again, even if no event woke it."""
WAITING_FOR_HARDWARE: Final = "WaitingForHardware"
"""Reason of the step that waits for a server."""


def queue_up(draft: Draft) -> MergePatch | None:
    """Return the write of the owner's finalizer and place in the queue, before any claim; None once both are set."""
    owner, metadata = draft.owner, Fields()
    if (finalizers := owner_finalizers(owner, present=True)) is not None:
        metadata["finalizers"] = finalizers
    if QUEUED_SINCE not in owner.annotations and owner.status.server is None:
        where = {QUEUED_IN: draft.wish.failure_domain} if draft.wish.failure_domain else {}
        metadata["annotations"] = {QUEUED_SINCE: rfc3339_micro(draft.now), **where}
    return owner.patch({"metadata": metadata}) if metadata else None


def claim(draft: Draft) -> Step:
    """Claim the server for this owner's place in the queue, if there is one."""
    owner, wished, state = draft.owner, draft.wish.servers, draft.state
    draft.phase = State.WAITING
    if problem := draft.wish.servers_problem:
        draft.set_condition(HARDWARE_READY, False, "InvalidAffinity", problem)
        return draft.waits("InvalidAffinity", problem)
    hardware = _choose(draft)
    if hardware is None:
        ranked = verdicts(wished, (*state.servers, *state.reserved), state.silent_bmcs)
        message = f"no hardware available: {shortage(ranked, state.place, state.claimed)}"
        draft.set_condition(HARDWARE_READY, False, NO_HARDWARE, message)
        ahead = state.place - sum(1 for candidate in ranked if candidate.fits)
        end, in_s = _end_reservation(draft, max(0, ahead))
        return draft.waits(WAITING_FOR_HARDWARE, message, *end, after_s=min(RECHECK_S, in_s or RECHECK_S))
    message = _claimed(verdict(wished, hardware, state.silent_bmcs))
    write = claim_patch(hardware, owner.claimant, since=owner.annotations.get(QUEUED_SINCE, ""))
    return draft.writes(write, owner.event("HardwareClaimed", message), _unrestricted(draft, hardware))


def report_claim(draft: Draft, hardware: Hardware) -> None:
    """Set the condition about a claim on a server of another namespace."""
    own, other, claims = draft.owner.obj.metadata.namespace, hardware.metadata.namespace, draft.state.claims
    if own == other:
        return
    if not claims.are_set:
        draft.set_condition(CLAIM_ALLOWED, True, "NotRestricted", unrestricted(other, own))
    elif problem := claims.problem(other, own):
        message = f"{problem}; the {draft.owner.of.noun} keeps its server. To allow the claim, {remedy(other, own)}."
        draft.set_condition(CLAIM_ALLOWED, False, "NotNamed", message)
    else:
        draft.set_condition(CLAIM_ALLOWED, True, "Allowed")


def _unrestricted(draft: Draft, hardware: Hardware) -> Emit | None:
    """The warning about a claim in another namespace that no rule allows or forbids."""
    own, other = draft.owner.obj.metadata.namespace, hardware.metadata.namespace
    if own == other or draft.state.claims.are_set:
        return None
    return draft.owner.event("ClaimNotRestricted", unrestricted(other, own), warning=True)


def _choose(draft: Draft) -> Hardware | None:
    """A server that is reserved for the owner's Cluster, otherwise one that is available to all."""
    wished, state = draft.wish.servers, draft.state
    own = reserving.reserved_candidates(wished, state.reserved, state.silent_bmcs)
    if state.own_place < len(own):
        return own[state.own_place].hardware
    # Owners of its Cluster that wait before it claim the reserved servers; the others compete for the available ones.
    place = state.place - min(state.own_place, len(own))
    known = {candidate.hardware.key for candidate in own}
    doubtful = [
        hardware
        for hardware in state.reserved
        if is_reserved_for(hardware, wished.cluster) and hardware.key not in known
    ]
    return pick(wished, (*state.servers, *doubtful), place, state.silent_bmcs)


def _end_reservation(draft: Draft, ahead: int) -> tuple[Sequence[Action], float | None]:
    """End the unused reservation of another Cluster, if this owner is next after the `ahead` owners that wait for such
    a server as well; otherwise return the time until then."""
    owner, state = draft.owner, draft.state
    yielded, in_s = reserving.yielding(draft.wish.servers, ahead, state.reserved, state.silent_bmcs, draft.now)
    due = reservation_of(yielded) if yielded is not None else None
    if yielded is None or due is None:
        return (), in_s
    reason = f"{owner.of.kind.kind} {owner.path} finds no other server that fits"
    return reserving.end(yielded, due, reason, draft.now), None


def _claimed(chosen: Candidate) -> str:
    """The message of the claim's event: the server, its score, and its concerns."""
    score = f" with score {chosen.score}" if chosen.score else ""
    doubts = f" because no better server fits: {'; '.join(chosen.concerns)}" if chosen.concerns else ""
    return f"Claimed Hardware {'/'.join(chosen.hardware.key)}{score}{doubts}."
