"""Taking a server for a machine; or saying why there is none, and what a person could do about it. Pure."""

from __future__ import annotations

from typing import Final

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE, LABEL_CONTROL_PLANE_NAME, LABEL_DEPLOYMENT_NAME
from ironbell.base.labels import SelectorError
from ironbell.contract.hardware_claim import take
from ironbell.controllers.capt.names import HARDWARE_READY, NO_HARDWARE, WANTED_IN, WANTED_SINCE, State
from ironbell.controllers.capt.observed import Observed, template_of
from ironbell.controllers.capt.progress import Progress
from ironbell.controllers.capt.selection import Verdict, Wish, elsewhere, pick, shortage, verdict, verdicts, wish
from ironbell.kube.decision import Decision, do, emit

LOOK_AGAIN_S: Final = 300.0
"""How often a machine without a server looks for one although nobody woke it."""


def claim(progress: Progress, observed: Observed) -> Decision:
    """Take the server that is this machine's turn, if there is one."""
    obj = observed.obj
    label, _, domain = obj.metadata.annotations.get(WANTED_IN, "").partition("=")
    progress.state = State.WAITING
    try:
        wished = wish(obj.spec, failure_domain_label=label, failure_domain=domain)
    except SelectorError as error:
        message = f"spec.hardwareAffinity: {error}"
        progress.note(HARDWARE_READY, False, "InvalidAffinity", message)
        return progress.waits("InvalidAffinity", message)
    hardware = pick(wished, observed.servers, observed.place, observed.silent_bmcs)
    if hardware is None:
        ranked = verdicts(wished, observed.servers, observed.silent_bmcs)
        remedies = f"{_other_domain(observed, wished)}{_no_spare(observed)}"
        message = f"no hardware available: {shortage(ranked, observed.place, observed.taken)}{remedies}"
        progress.note(HARDWARE_READY, False, NO_HARDWARE, message)
        return progress.waits("WaitingForHardware", message, after_s=LOOK_AGAIN_S)
    since = obj.metadata.annotations.get(WANTED_SINCE, "")
    message = _claimed(verdict(wished, hardware, observed.silent_bmcs))
    told = emit(TINKERBELL_MACHINE, obj, reason="HardwareClaimed", message=message)
    return do(take(hardware, observed.claimant, since=since), told)


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
