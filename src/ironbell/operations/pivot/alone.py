"""Entry to pivots: one action at a time, guarded by a Lease on the target, which a killed run does not block.

A Lease expires after seconds. If its holder ran on this machine and is dead, the Lease is deleted instead.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ironbell.api.client import Api, Conflict, NotFound, Preconditions
from ironbell.api.core import LEASE
from ironbell.base.clock import SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.kube.manager.leader import LeaderElection, LeaseSettings
from ironbell.operations.pivot.graph import Plan, Selection
from ironbell.operations.pivot.journal import JOURNAL, JOURNAL_NAMESPACE
from ironbell.operations.pivot.left_paused import paused_clusters
from ironbell.operations.pivot.moving import Outcome, Pivot
from ironbell.operations.pivot.site import SiteError
from ironbell.operations.progress import Progress, Report

Work = Callable[[], Awaitable[Outcome]]
_PROC: Final = Path("/proc")
_START_TIME: Final = 19
"""Index of the process's start time among the fields in /proc/PID/stat behind the program's name."""


def identity(pid: int, random: str) -> str:
    """Identity of a holder: this boot of this machine, the process and its start; `random` tells two in one apart."""
    return f"{_place()}.{pid}.{_began(pid)}.{random}"


def is_dead(holder: str) -> bool:
    """Return whether a holder was a process of this machine that has exited; False if that is unknown."""
    place, _, rest = holder.partition(".")
    pid, _, rest = rest.partition(".")
    began = rest.partition(".")[0]
    if not place or place != _place() or not pid.isdecimal() or not began:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # the process belongs to another account
    return _began(int(pid)) not in ("", began)


def _place() -> str:
    """The scope of process ids: this boot of this machine, and the PID namespace."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return boot + "".join(filter(str.isdecimal, (_PROC / "self/ns/pid").readlink().name))
    return ""


def _began(pid: int) -> str:
    with suppress(OSError, IndexError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[_START_TIME]
    return ""


class Action(StrEnum):
    """An action on a pivot."""

    PREVIEW = "preview"
    """Return what would be moved, and write nothing."""
    MOVE = "move"
    """Move the selected objects, or continue."""
    FINISH = "finish"
    """Continue after the point of no return, without the source."""
    ABORT = "abort"


async def perform(pivot: Pivot, action: Action, selection: Selection) -> Plan | Outcome:
    """Perform one action; all but a preview hold the Lease.

    Raises:
        PivotRejectedError: a check found problems; nothing is lost.
        JournalError: another pivot is under way, or it is too late for the action.
        SiteError: an API does not answer or rejects a write, or another run took over; run again.
    """
    if action is Action.PREVIEW:
        return await pivot.preview(selection)
    works: dict[Action, Work] = {Action.FINISH: pivot.finish_alone, Action.ABORT: pivot.abort}
    outcome = await _alone(
        pivot.target.api, pivot.new_id(), pivot.report, works.get(action, partial(pivot.run, selection))
    )
    if action is not Action.MOVE or not pivot.settings.adopts:
        return outcome
    return replace(outcome, left_paused=await paused_clusters(pivot.target, selection))


async def _alone(api: Api, random: str, report: Report, work: Work) -> Outcome:
    await _remove_dead(api, report)
    lease = LeaseSettings(
        JOURNAL_NAMESPACE, JOURNAL, identity(os.getpid(), random), duration_s=10.0, renew_s=6.0, retry_s=1.0
    )
    outcomes: list[Outcome] = []

    async def working() -> None:
        outcomes.append(await work())

    await LeaderElection(api, lease, SteadyClock(), SystemRandomness()).run(working)
    if not outcomes:
        raise SiteError("another run took over, or the target did not answer for too long; run the same command again")
    return outcomes[0]


async def _remove_dead(api: Api, report: Report) -> None:
    """Delete the Lease of a dead run."""
    try:
        body = await api.get(LEASE.collection, JOURNAL_NAMESPACE, JOURNAL)
    except NotFound:
        return
    stored = msgspec.json.decode(body)
    holder = stored.get("spec", {}).get("holderIdentity") or ""
    if not holder:
        return
    if not is_dead(holder):
        report(Progress("another run may be active: waiting until it ends"))
        return
    meta = stored["metadata"]
    with suppress(NotFound, Conflict):
        preconditions = Preconditions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        await api.delete(LEASE.collection, JOURNAL_NAMESPACE, JOURNAL, preconditions=preconditions)
