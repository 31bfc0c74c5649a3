"""The order of the stages: queue, claim, install, run, release. Pure.

Every stage returns ordered writes, or the reason for which the owner waits.
"""

from __future__ import annotations

from datetime import datetime

from ironbell.contract.servers.claim import HELD, release
from ironbell.contract.servers.restored import Restored, hold_reason, restored
from ironbell.kube.decision import Need
from ironbell.provisioner.lifecycle import booting
from ironbell.provisioner.lifecycle.bmc_health import report_health
from ironbell.provisioner.lifecycle.claiming import claim, queue_up, report_claim
from ironbell.provisioner.lifecycle.host import READY, Draft, HostState, HostWish, Step
from ironbell.provisioner.lifecycle.installing import install
from ironbell.provisioner.lifecycle.names import HARDWARE_READY, RELEASED, State
from ironbell.provisioner.lifecycle.nodes import QUERY_INTERVAL_S, confirmed, confirming_query, identify, still_runs
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.releasing import release_server
from ironbell.provisioner.lifecycle.selection import unusable
from ironbell.provisioner.user_data import withdrawal


def next_step(owner: Owner, wish: HostWish, state: HostState, now: datetime) -> Step:
    """Return the next step towards the wish of an owner."""
    draft = Draft(owner, wish, state, now)
    if state.hardware is not None:
        report_health(draft, state.hardware)
    if state.surplus:
        # They were claimed for this owner, and are otherwise unchanged.
        return draft.writes(*(release(hardware) for hardware in state.surplus))
    if wish.releases:
        draft.set_condition(RELEASED, False, "Releasing")
        return release_server(draft)
    if wish.waits_for is not None:
        draft.phase = owner.status.phase or State.WAITING
        return draft.waits(wish.waits_for.reason, wish.waits_for.message)
    if (queued := queue_up(draft)) is not None:
        return draft.writes(queued)
    return _with_server(draft) if state.hardware is not None else _without_server(draft)


def _without_server(draft: Draft) -> Step:
    owner, status = draft.owner, draft.owner.status
    if status.server is None and not status.is_ready:
        return claim(draft)
    where = "/".join(status.server or ("", ""))
    message = f"Hardware {where} was deleted or is claimed by another owner. Delete the {owner.of.noun}."
    draft.phase = State.FAILED
    draft.set_condition(HARDWARE_READY, False, "HardwareLost", message)
    return draft.waits("HardwareLost", message)


def _with_server(draft: Draft) -> Step:
    hardware, node, is_ready = draft.state.hardware, draft.wish.node, draft.owner.status.is_ready
    if hardware is None:
        return _without_server(draft)
    problems = unusable(hardware)
    if problems and not is_ready:
        message = f"Hardware {hardware.metadata.name} cannot be installed: {'; '.join(map(str, problems))}"
        draft.set_condition(HARDWARE_READY, False, "HardwareUnusable", message)
        return draft.waits("HardwareUnusable", message)
    draft.hardware = hardware
    draft.set_condition(HARDWARE_READY, True, "HardwareReady", f"Hardware {'/'.join(hardware.key)}")
    report_claim(draft, hardware)
    if draft.wish.record is not None:
        return draft.proceeds(draft.wish.record)
    if (record := restored(hardware)) is not None:
        return _restored(draft, record)
    if HELD in hardware.metadata.annotations:
        message = f"Hardware {hardware.metadata.name} is held: {hardware.metadata.annotations[HELD]}"
        if not is_ready:
            return draft.waits("HardwareHeld", message)
        draft.set_condition(READY, True, "Ready", message)
        return draft.proceeds()
    if not is_ready:
        return install(draft, hardware)
    if (failure := booting.failure_of(draft, hardware)) is not None:
        return booting.failed(draft, hardware, failure)
    draft.set_condition(READY, True, "Ready")
    draft.phase = State.RUNNING
    if node is not None and not node.name:
        return identify(draft, node, hardware)
    return draft.proceeds(withdrawal(hardware) if node is None or node.is_ready else None)


def _restored(draft: Draft, record: Restored) -> Step:
    """Leave the server unchanged until it is confirmed that the owner still has it."""
    hardware, node, query = draft.state.hardware, draft.wish.node, confirming_query(draft.wish.node)
    message = hold_reason(hardware) or "" if hardware is not None else ""
    if not draft.owner.status.is_ready:
        return draft.waits("HardwareNotConfirmed", message)
    draft.set_condition(READY, True, "Ready", message)
    if query is None or node is None or hardware is None:
        return draft.proceeds()
    fact = draft.state.node
    view = fact.value if fact is not None and fact.error is None else None
    if still_runs(view, node.machine, hardware, record):
        message = f"Confirmed server {hardware.metadata.name}: Node {query.name} still runs on it, as in the backup."
        return draft.proceeds(confirmed(hardware), draft.owner.event("HardwareConfirmed", message))
    return draft.proceeds(needs=(Need(query, QUERY_INTERVAL_S),))
