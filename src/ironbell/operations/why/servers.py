"""Findings about servers: TinkerbellMachine, Hardware and BMC. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.bmc.machine import MachineConditionType
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import HardwareState
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.bmc.driver import BmcProblem, reported_cause, reported_problem
from ironbell.contract.causes import Weight, weight_of
from ironbell.contract.clusters import bootstrap
from ironbell.contract.clusters.machine_causes import POWERED_ON
from ironbell.contract.servers.boot_progress import BootStage
from ironbell.contract.servers.claim import CLAIMED_SINCE, HELD, claim_of
from ironbell.contract.servers.directory import ERROR, KEEP_DISKS
from ironbell.contract.servers.wipe_due import WIPE_DUE, WipeDue
from ironbell.controllers.tink.hardware import problems
from ironbell.operations.why import addresses
from ironbell.operations.why.advice import OF_BMC, OF_TINKERBELL_MACHINE, Advice
from ironbell.operations.why.candidates import candidates, waits_for_server
from ironbell.operations.why.depends import hardware_events, hardware_of
from ironbell.operations.why.model import Finding, Object, Owner
from ironbell.operations.why.world import World, annotation, condition, is_deleting, since
from ironbell.provisioner import claims_from
from ironbell.provisioner.bmc_address import cause_and_remedy
from ironbell.provisioner.deferral import reservation_of
from ironbell.provisioner.deletion import waits_for_hold
from ironbell.provisioner.disks import kept_disks_after_release, unknown_kept_disks
from ironbell.provisioner.health import Obstacle
from ironbell.provisioner.lifecycle.selection import obstacles

_BOOTSTRAP: Final = ("BootstrapSucceeded", "BootstrapExecSucceeded")
_UNKNOWN: Final = Advice("it is Ready")


def tinkerbell_machine(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a TinkerbellMachine."""
    failure = _bootstrap_failure(obj, world)
    if failure is not None and not is_deleting(obj):
        return failure
    ready = condition(obj, "Ready")
    if ready.get("status") == "True":
        powered = condition(obj, POWERED_ON)
        if powered.get("status") != "False" or is_deleting(obj):
            return None
        message = powered.get("message") or f"server {obj.get('spec', {}).get('hardwareName', '')} is powered off"
        remedy = "Power it on, through its BMC or by hand"
        return Finding(message, "PoweredOff", since(powered), "it is powered on", remedy, Weight.NEEDS_HELP)
    reason = ready.get("reason", "")
    if not reason:
        return Finding(
            "has not been reconciled yet",
            "",
            obj["metadata"].get("creationTimestamp", ""),
            "its controller has read it",
        )
    advice, weight = OF_TINKERBELL_MACHINE.get(reason, _UNKNOWN), weight_of(reason)
    server = obj.get("spec", {}).get("hardwareName", "")
    message, remedy = ready.get("message", "") or reason, advice.remedy
    if waits_for_server(obj) and (first := _shortage_remedy(obj, world)):
        remedy = f"{first}, add Hardware, or release a server"
    if weight is Weight.WAITING and server:
        message = f"{message.rstrip('.')} (on server {server})"
    return Finding(message, reason, since(ready), advice.ends_when, remedy, weight)


def _shortage_remedy(obj: Object, world: World) -> str:
    """The remedy for what keeps servers from being claimed; empty if it is only that other servers are needed."""
    servers = candidates(obj, world)
    known = obstacles(servers)
    if Obstacle.SILENT_BMC in known:
        return "Correct what keeps the BMC from answering"
    # a hold has a reason: it is only named if most servers are held
    if known[:1] == [Obstacle.HELD]:
        return f"Remove annotation {HELD} from a server that may be used"
    if Obstacle.CLAIMS_FROM not in known:
        return ""
    forbidden = (server for server in servers if server.problems[0].obstacle is Obstacle.CLAIMS_FROM)
    remedy = claims_from.remedy(next(forbidden).hardware.metadata.namespace, obj["metadata"].get("namespace", ""))
    return f"{remedy[:1].upper()}{remedy[1:]}"


def hardware(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a server's own state: its validity, a hold, its deletion."""
    if is_deleting(obj):
        return _deletion(obj)
    error, held = annotation(obj, ERROR), annotation(obj, HELD)
    if obj.get("status", {}).get("state") == HardwareState.ERROR:
        remedy = "Correct the named fields; the Hardware is checked again immediately"
        if not problems(HARDWARE.convert(obj)):
            # it is valid by itself, so that the error is about a value that another Hardware has as well
            remedy = "Correct the value in the Hardware that is wrong, or delete that Hardware"
        message = f"cannot be used: {error or 'its status.state is Error'}"
        return Finding(message, "HardwareError", "", "the Hardware is valid", remedy, Weight.NEEDS_HELP)
    if is_held(obj):
        message = f"is held, so nothing may claim, install or wipe it: {held or 'no reason was recorded'}"
        remedy = f"Remove annotation {HELD} once the server may be used"
        return Finding(message, "HardwareHeld", "", "the hold is removed", remedy, Weight.NEEDS_HELP)
    return _complete_wipe(obj) or addresses.hardware(obj)


def _deletion(obj: Object) -> Finding | None:
    """Report what the deletion of a Hardware waits for: its wipe, owner or hold; None if only for finalizers."""
    owner, time = owner_of(obj), obj["metadata"]["deletionTimestamp"]
    waits, ends, remedies = [], [], []
    if _due(obj) is not None:
        waits.append("a complete wipe of its disks is due")
        ends.append("the wipe has completed")
        if not obj.get("spec", {}).get("bmcRef"):
            remedies.append("boot the server, which has no BMC, over the network")
    elif owner:
        waits.append(f"it is in use by {owner}")
        ends.append(f"{owner} releases it")
        remedies.append(f"delete the Machine of {owner}")
    if waits_for_hold(HARDWARE.convert(obj)):
        waits.append(f"it is held: {annotation(obj, HELD) or 'no reason was recorded'}")
        ends.append("the hold is removed")
        remedies.append(f"remove annotation {HELD}")
    if not waits:
        return None
    message, remedy = f"is being deleted and waits: {', and '.join(waits)}", " and ".join(remedies)
    weight = Weight.NEEDS_HELP if remedies else Weight.WAITING
    return Finding(message, "Deleting", time, " and ".join(ends), f"{remedy[:1].upper()}{remedy[1:]}", weight)


def _complete_wipe(obj: Object) -> Finding | None:
    """Report a complete wipe that was deferred and runs now."""
    due = _due(obj)
    if due is None or not due.ended:
        return None
    server = HARDWARE.convert(obj)
    if wrong := unknown_kept_disks(server, kept_disks_after_release(server, due)):
        message = f"is not wiped, although a complete wipe is due: {wrong}"
        remedy = f"Correct annotation {KEEP_DISKS}; where the Machine named the disk, correct {WIPE_DUE}"
        return Finding(
            message, "KeepDisksUnknown", due.ended_at, "the annotation is corrected", remedy, Weight.NEEDS_HELP
        )
    message = f"is being wiped completely before it can be claimed: {due.ended}"
    if obj.get("spec", {}).get("bmcRef"):
        return Finding(message, "Wiping", due.ended_at, "a complete wipe is proven")
    remedy = "Boot the server over the network; it has no BMC"
    return Finding(message, "Wiping", due.ended_at, "a complete wipe is proven", remedy, Weight.NEEDS_HELP)


def _due(obj: Object) -> WipeDue | None:
    """The complete wipe that is due on a server without an owner."""
    return reservation_of(HARDWARE.convert(obj)) if WIPE_DUE in (obj["metadata"].get("annotations") or {}) else None


def bmc_machine(obj: Object, world: World, now: datetime) -> Finding | None:
    """Report a BMC that cannot be reached, or that rejects the login."""
    contactable = condition(obj, MachineConditionType.CONTACTABLE)
    if not contactable:
        return Finding("has not been contacted yet", "NotAsked", "", "the BMC has been queried once")
    if contactable.get("status") == "True":
        return None
    problem = reported_problem(contactable.get("message", ""))
    cause = reported_cause(problem, contactable.get("message", ""))
    connection = obj.get("spec", {}).get("connection", {})
    secret = connection.get("authSecretRef") or {}
    advice = OF_BMC[problem or BmcProblem.UNREACHABLE]
    remedy = advice.remedy.format(secret=f"{secret.get('namespace', '')}/{secret.get('name', '')}")
    if problem == BmcProblem.ADDRESS:
        cause, remedy = cause_and_remedy(BMC_MACHINE.convert(obj))
    message = f"cannot be used: {cause or 'the BMC does not answer'}"
    reason = problem or "NotContactable"
    return Finding(message, reason, since(contactable), advice.ends_when, remedy, Weight.NEEDS_HELP)


def facts(obj: Object) -> tuple[str, ...]:
    """Facts about a Hardware beside what blocks it."""
    owner, due = owner_of(obj), _due(obj)
    if due is not None:
        limit = "before another owner can claim it" if not due.ended else "before it can be claimed"
        return (f"Reserved for {due} since {_in_seconds(due.since)}.", f"A complete wipe of its disks is due {limit}.")
    if not owner:
        return ("It is not claimed.",)
    return (f"In use by {owner}" + (f", claimed for it since {owner.time}." if owner.time else "."),)


def _in_seconds(time: str) -> str:
    """A stored time without its fraction; text that is not a time stays unchanged."""
    try:
        return rfc3339(parse_rfc3339(time)) if time else ""
    except ValueError:
        return time


def is_held(obj: Object) -> bool:
    """Return whether a Hardware is held, with or without a reason."""
    return HELD in (obj["metadata"].get("annotations") or {})


def owner_of(obj: Object) -> Owner | None:
    """The owner of a Hardware, or None."""
    claim = claim_of(HARDWARE.convert(obj))
    if claim is None:
        return None
    kind = claim.kind or TINKERBELL_MACHINE.kind
    return Owner(kind, claim.namespace, claim.name, _in_seconds(annotation(obj, CLAIMED_SINCE)))


def _bootstrap_failure(obj: Object, world: World) -> Finding | None:
    """Report the failure of the installed system: from a condition or, before that exists, from an Event of its
    server."""
    ends, remedy = (
        "the Machine is replaced, or the failure is corrected",
        "Correct the cause, then delete the Machine; its owner creates another",
    )
    for name in _BOOTSTRAP:
        reported = condition(obj, name)
        if reported.get("status") == "False":
            message = f"its installed system failed: {reported.get('message') or 'no reason was reported'}"
            return Finding(message, reported.get("reason", ""), since(reported), ends, remedy, Weight.NEEDS_HELP)
    server, is_booting = hardware_of(obj), condition(obj, "Ready").get("reason") == "Booting"
    machine = world.get(server) if server is not None and is_booting else None
    event = _failure_event(machine, world) if machine is not None else {}
    failure = annotation(obj, bootstrap.FAILURE_ANNOTATION) or event.get("message", "")
    if not failure:
        return None
    where = f" of server {server.name}" if server is not None else ""
    message = f"the installed system{where} failed: {failure}"
    return Finding(message, "BootstrapFailed", event.get("lastTimestamp") or "", ends, remedy, Weight.NEEDS_HELP)


def _failure_event(server: Object, world: World) -> Object:
    """The latest report of the current owner's system if it is a failure; otherwise empty."""
    stages = {BootStage.INSTALLED.value, BootStage.INSTALLED_WITH_ERRORS.value}
    claimed = annotation(server, CLAIMED_SINCE)
    reports = [
        event
        for event in hardware_events(server, world)
        if event.get("reason") in stages and str(event.get("lastTimestamp") or "") >= claimed
    ]
    last = max(reports, key=lambda event: str(event.get("lastTimestamp") or ""), default=None)
    return last if last is not None and last["reason"] == BootStage.INSTALLED_WITH_ERRORS.value else {}
