"""The order of the stages: queue, claim, install, run, release. Pure.

Every stage ends in the same way: with writes in their order, or with what the owner waits for.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.contract.servers.claim import HELD, release
from ironbell.contract.servers.restored import Restored, hold_reason, restored
from ironbell.kube.decision import Need
from ironbell.provisioner.lifecycle import booting
from ironbell.provisioner.lifecycle.bmc_health import report_health
from ironbell.provisioner.lifecycle.claiming import claim, note_claim, queue_up
from ironbell.provisioner.lifecycle.host import READY, Draft, HostState, HostWish, Step
from ironbell.provisioner.lifecycle.installing import install
from ironbell.provisioner.lifecycle.names import HARDWARE_READY, RELEASED, State
from ironbell.provisioner.lifecycle.nodes import ASK_AGAIN_S, confirmed, confirming_query, identify, still_runs
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.releasing import release_server
from ironbell.provisioner.lifecycle.selection import unusable
from ironbell.provisioner.user_data import withdrawal


def next_step(owner: Owner, wish: HostWish, state: HostState, now: datetime) -> Step:
    """Return the next step towards what an owner wants."""
    draft = Draft(owner, wish, state, now)
    if state.hardware is not None:
        report_health(draft, state.hardware)
    if state.surplus:
        # they have its name, and nothing else was ever done to them
        return draft.writes(*(release(hardware) for hardware in state.surplus))
    if wish.releases:
        draft.note(RELEASED, False, "Releasing")
        return release_server(draft)
    if wish.waits_for is not None:
        draft.phase = owner.status.phase or State.WAITING
        return draft.waits(wish.waits_for.reason, wish.waits_for.message)
    queued = queue_up(draft)
    if queued is not None:
        return draft.writes(queued)
    return _with_server(draft) if state.hardware is not None else _without_server(draft)


def _without_server(draft: Draft) -> Step:
    owner, status = draft.owner, draft.owner.status
    if status.server is None and not status.is_ready:
        return claim(draft)
    where = "/".join(status.server or ("", ""))
    message = f"Hardware {where} is gone, or belongs to somebody else; delete the {owner.of.noun}"
    draft.phase = State.FAILED
    draft.note(HARDWARE_READY, False, "HardwareLost", message)
    return draft.waits("HardwareLost", message)


def _with_server(draft: Draft) -> Step:
    hardware, node, is_ready = draft.state.hardware, draft.wish.node, draft.owner.status.is_ready
    if hardware is None:
        return _without_server(draft)
    problems = unusable(hardware)
    if problems and not is_ready:
        message = f"Hardware {hardware.metadata.name} cannot be installed: {'; '.join(map(str, problems))}"
        draft.note(HARDWARE_READY, False, "HardwareUnusable", message)
        return draft.waits("HardwareUnusable", message)
    draft.hardware = hardware
    draft.note(HARDWARE_READY, True, "HardwareReady", f"Hardware {'/'.join(hardware.key)}")
    note_claim(draft, hardware)
    if draft.wish.record is not None:
        return draft.goes_on(draft.wish.record)
    record = restored(hardware)
    if record is not None:
        return _restored(draft, record)
    if HELD in hardware.metadata.annotations:
        message = f"Hardware {hardware.metadata.name} is held: {hardware.metadata.annotations[HELD]}"
        if not is_ready:
            return draft.waits("HardwareHeld", message)
        draft.note(READY, True, "Ready", message)
        return draft.goes_on()
    if not is_ready:
        return install(draft, hardware)
    failure = booting.failure_of(draft, hardware)
    if failure is not None:
        return booting.failed(draft, hardware, failure)
    draft.note(READY, True, "Ready")
    draft.phase = State.RUNNING
    if node is not None and not node.name:
        return identify(draft, node, hardware)
    return draft.goes_on(withdrawal(hardware) if node is None or node.is_ready else None)


def _restored(draft: Draft, record: Restored) -> Step:
    """Nothing is done to the server before it is known that the owner still has it."""
    hardware, node, asked = draft.state.hardware, draft.wish.node, confirming_query(draft.wish.node)
    message = hold_reason(hardware) or "" if hardware is not None else ""
    if not draft.owner.status.is_ready:
        return draft.waits("HardwareNotConfirmed", message)
    draft.note(READY, True, "Ready", message)
    if asked is None or node is None or hardware is None:
        return draft.goes_on()
    fact = draft.state.node
    view = fact.value if fact is not None and fact.error is None else None
    if still_runs(view, node.machine, hardware, record):
        same = f"{hardware.metadata.name} is as in the backup: Node {asked.name} still runs on it"
        return draft.goes_on(confirmed(hardware), draft.owner.event("HardwareConfirmed", same))
    return draft.goes_on(needs=(Need(asked, ASK_AGAIN_S),))
