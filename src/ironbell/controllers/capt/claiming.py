"""Taking a server for a machine; or saying why there is none, and what a person could do about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE, LABEL_CONTROL_PLANE_NAME, LABEL_DEPLOYMENT_NAME
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.labels import SelectorError
from ironbell.contract.hardware_claim import take
from ironbell.controllers.capt import reserving
from ironbell.controllers.capt.host import wish
from ironbell.controllers.capt.observed import Observed, template_of
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.decision import Action, Decision, do, emit
from ironbell.provisioner.claims_from import remedy, unrestricted
from ironbell.provisioner.deferral import identity, is_reserved_for, reservation_of
from ironbell.provisioner.lifecycle.names import (
    CLAIM_ALLOWED,
    HARDWARE_READY,
    NO_HARDWARE,
    WANTED_IN,
    WANTED_SINCE,
    State,
)
from ironbell.provisioner.lifecycle.selection import Verdict, Wish, elsewhere, pick, shortage, verdict, verdicts

LOOK_AGAIN_S: Final = 300.0
"""How often a machine without a server looks for one although nobody woke it."""


def claim(progress: Progress, observed: Observed) -> Decision:
    """Take the server that is this machine's turn, if there is one."""
    obj = observed.obj
    label, _, domain = obj.metadata.annotations.get(WANTED_IN, "").partition("=")
    progress.state = State.WAITING
    try:
        wished = wish(
            obj.spec,
            failure_domain_label=label,
            failure_domain=domain,
            cluster=identity(observed.cluster),
            namespace=obj.metadata.namespace,
            claims=observed.claims,
        )
    except SelectorError as error:
        message = f"spec.hardwareAffinity: {error}"
        progress.note(HARDWARE_READY, False, "InvalidAffinity", message)
        return progress.waits("InvalidAffinity", message)
    hardware = _choose(wished, observed)
    if hardware is None:
        ranked = verdicts(wished, (*observed.servers, *observed.reserved), observed.silent_bmcs)
        remedies = f"{_other_domain(observed, wished)}{_no_spare(observed)}"
        message = f"no hardware available: {shortage(ranked, observed.place, observed.taken)}{remedies}"
        progress.note(HARDWARE_READY, False, NO_HARDWARE, message)
        ahead = observed.place - sum(1 for one in ranked if one.fits)
        end, in_s = _end_reservation(progress, observed, wished, max(0, ahead))
        return progress.waits("WaitingForHardware", message, *end, after_s=min(LOOK_AGAIN_S, in_s or LOOK_AGAIN_S))
    since = obj.metadata.annotations.get(WANTED_SINCE, "")
    message = _claimed(verdict(wished, hardware, observed.silent_bmcs))
    told = emit(TINKERBELL_MACHINE, obj, reason="HardwareClaimed", message=message)
    return do(take(hardware, observed.claimant, since=since), told, _unrestricted(observed, hardware))


def note_claim(progress: Progress, observed: Observed, hardware: Hardware) -> None:
    """Set the condition about a claim on a server of another namespace."""
    own, owner = observed.obj.metadata.namespace, hardware.metadata.namespace
    if own == owner:
        return
    if not observed.claims.are_set:
        progress.note(CLAIM_ALLOWED, True, "NotRestricted", unrestricted(owner, own))
    elif problem := observed.claims.problem(owner, own):
        progress.note(
            CLAIM_ALLOWED,
            False,
            "NotNamed",
            f"{problem}; the machine keeps its server. To allow it, {remedy(owner, own)}.",
        )
    else:
        progress.note(CLAIM_ALLOWED, True, "Allowed")


def _unrestricted(observed: Observed, hardware: Hardware) -> Action | None:
    """The warning about a claim that nobody has allowed."""
    own, owner = observed.obj.metadata.namespace, hardware.metadata.namespace
    if own == owner or observed.claims.are_set:
        return None
    message = unrestricted(owner, own)
    return emit(TINKERBELL_MACHINE, observed.obj, reason="ClaimNotRestricted", message=message, warning=True)


def _choose(wished: Wish, observed: Observed) -> Hardware | None:
    """A server that is reserved for the machine's Cluster, else one that is available to all."""
    own = reserving.own(wished, observed.reserved, observed.silent_bmcs)
    if observed.own_place < len(own):
        return own[observed.own_place].hardware
    # Those of its Cluster that wait before it take the reserved ones; the others are behind all that is available.
    place = observed.place - min(observed.own_place, len(own))
    known = {one.hardware.key for one in own}
    doubtful = [one for one in observed.reserved if is_reserved_for(one, wished.cluster) and one.key not in known]
    return pick(wished, (*observed.servers, *doubtful), place, observed.silent_bmcs)


def _end_reservation(
    progress: Progress, observed: Observed, wished: Wish, ahead: int
) -> tuple[Sequence[Action], float | None]:
    """Have a server wiped that another Cluster reserves and has not used, if it is this machine's turn after those
    `ahead` that wait for such a server as well; or in how long that may be."""
    found, in_s = reserving.yielding(wished, ahead, observed.reserved, observed.silent_bmcs, progress.now)
    due = reservation_of(found) if found is not None else None
    if found is None or due is None:
        return (), in_s
    why = f"TinkerbellMachine {'/'.join(observed.obj.key)} finds no other server that fits"
    return reserving.end(found, due, why, progress.now), None


def _claimed(chosen: Verdict) -> str:
    """The event of a claim: the server, how well it matches, and what should have spoken for another."""
    score = f" with score {chosen.score}" if chosen.score else ""
    doubts = f" because no better server fits: {'; '.join(chosen.concerns)}" if chosen.concerns else ""
    return f"Claimed Hardware {'/'.join(chosen.hardware.key)}{score}{doubts}."


def _other_domain(observed: Observed, wished: Wish) -> str:
    """What to do about a control plane's machine that was put into a domain which can take none any more."""
    machine, others = observed.machine, elsewhere(wished, observed.servers, observed.silent_bmcs)
    if machine is None or not others or LABEL_CONTROL_PLANE not in machine.metadata.labels:
        return ""
    named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return f"; failure domain {named} has one: delete Machine {machine.metadata.name}, and another is made for there"


def _no_spare(observed: Observed) -> str:
    """What to do about a rollout for which there is no spare server."""
    machine = observed.machine
    if machine is None:
        return ""
    rolled, mine = _rolled(machine), (machine.spec.version, template_of(observed.obj))
    others = [one for owner, one in observed.siblings if _rolled(owner) == rolled and (owner.spec.version, one) != mine]
    if not rolled or not others:
        return ""
    return f"; {rolled} is being rolled out: with maxSurge 0 it needs no spare server"


def _rolled(machine: Machine) -> str:
    """Who rolls this Machine out."""
    labels = machine.metadata.labels
    if LABEL_CONTROL_PLANE in labels:
        return f"control plane {labels.get(LABEL_CONTROL_PLANE_NAME) or machine.spec.cluster_name}"
    name = labels.get(LABEL_DEPLOYMENT_NAME)
    return f"MachineDeployment {name}" if name else ""
