"""Claiming a server for an owner; or reporting why there is none, and what a person could do about it. Pure."""

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
    WANTED_IN,
    WANTED_SINCE,
    State,
)
from ironbell.provisioner.lifecycle.owner import owner_finalizers
from ironbell.provisioner.lifecycle.selection import Verdict, pick, shortage, verdict, verdicts

LOOK_AGAIN_S: Final = 300.0
"""How often an owner without a server looks for one although nothing woke it."""
WAITING_FOR_HARDWARE: Final = "WaitingForHardware"
"""Reason of the step that waits for a server."""


def queue_up(draft: Draft) -> MergePatch | None:
    """Return the write that comes before any claim: the owner's finalizer, and its place in the queue; None once both
    are there."""
    owner, metadata = draft.owner, Fields()
    finalizers = owner_finalizers(owner, present=True)
    if finalizers is not None:
        metadata["finalizers"] = finalizers
    if WANTED_SINCE not in owner.annotations and owner.status.server is None:
        where = {WANTED_IN: draft.wish.failure_domain} if draft.wish.failure_domain else {}
        metadata["annotations"] = {WANTED_SINCE: rfc3339_micro(draft.now), **where}
    return owner.patch({"metadata": metadata}) if metadata else None


def claim(draft: Draft) -> Step:
    """Claim the server that is this owner's turn, if there is one."""
    owner, wished, state = draft.owner, draft.wish.servers, draft.state
    draft.phase = State.WAITING
    if problem := draft.wish.servers_problem:
        draft.note(HARDWARE_READY, False, "InvalidAffinity", problem)
        return draft.waits("InvalidAffinity", problem)
    hardware = _choose(draft)
    if hardware is None:
        ranked = verdicts(wished, (*state.servers, *state.reserved), state.silent_bmcs)
        message = f"no hardware available: {shortage(ranked, state.place, state.taken)}"
        draft.note(HARDWARE_READY, False, NO_HARDWARE, message)
        ahead = state.place - sum(1 for found in ranked if found.fits)
        end, in_s = _end_reservation(draft, max(0, ahead))
        return draft.waits(WAITING_FOR_HARDWARE, message, *end, after_s=min(LOOK_AGAIN_S, in_s or LOOK_AGAIN_S))
    message = _claimed(verdict(wished, hardware, state.silent_bmcs))
    write = claim_patch(hardware, owner.claimant, since=owner.annotations.get(WANTED_SINCE, ""))
    return draft.writes(write, owner.event("HardwareClaimed", message), _unrestricted(draft, hardware))


def note_claim(draft: Draft, hardware: Hardware) -> None:
    """Set the condition about a claim on a server of another namespace."""
    own, other, claims = draft.owner.obj.metadata.namespace, hardware.metadata.namespace, draft.state.claims
    if own == other:
        return
    if not claims.are_set:
        draft.note(CLAIM_ALLOWED, True, "NotRestricted", unrestricted(other, own))
    elif problem := claims.problem(other, own):
        message = f"{problem}; the machine keeps its server. To allow it, {remedy(other, own)}."
        draft.note(CLAIM_ALLOWED, False, "NotNamed", message)
    else:
        draft.note(CLAIM_ALLOWED, True, "Allowed")


def _unrestricted(draft: Draft, hardware: Hardware) -> Emit | None:
    """The warning about a claim that nobody has allowed."""
    own, other = draft.owner.obj.metadata.namespace, hardware.metadata.namespace
    if own == other or draft.state.claims.are_set:
        return None
    return draft.owner.event("ClaimNotRestricted", unrestricted(other, own), warning=True)


def _choose(draft: Draft) -> Hardware | None:
    """A server that is reserved for the owner's Cluster, else one that is available to all."""
    wished, state = draft.wish.servers, draft.state
    own = reserving.own(wished, state.reserved, state.silent_bmcs)
    if state.own_place < len(own):
        return own[state.own_place].hardware
    # Those of its Cluster that wait before it take the reserved ones; the others are behind all that is available.
    place = state.place - min(state.own_place, len(own))
    known = {found.hardware.key for found in own}
    doubtful = [each for each in state.reserved if is_reserved_for(each, wished.cluster) and each.key not in known]
    return pick(wished, (*state.servers, *doubtful), place, state.silent_bmcs)


def _end_reservation(draft: Draft, ahead: int) -> tuple[Sequence[Action], float | None]:
    """Have a server wiped that another Cluster reserves and has not used, if it is this owner's turn after those
    `ahead` that wait for such a server as well; or in how long that may be."""
    owner, state = draft.owner, draft.state
    found, in_s = reserving.yielding(draft.wish.servers, ahead, state.reserved, state.silent_bmcs, draft.now)
    due = reservation_of(found) if found is not None else None
    if found is None or due is None:
        return (), in_s
    why = f"{owner.of.kind.kind} {owner.path} finds no other server that fits"
    return reserving.end(found, due, why, draft.now), None


def _claimed(chosen: Verdict) -> str:
    """The event of a claim: the server, how well it matches, and what should have spoken for another."""
    score = f" with score {chosen.score}" if chosen.score else ""
    doubts = f" because no better server fits: {'; '.join(chosen.concerns)}" if chosen.concerns else ""
    return f"Claimed Hardware {'/'.join(chosen.hardware.key)}{score}{doubts}."
