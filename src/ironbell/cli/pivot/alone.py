"""One run at a time: a Lease on the target, and what becomes of one that was killed.

A Lease runs out after seconds. Where the run that held it was on this machine and is dead, nobody has to wait for that.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ironbell.api.client import Api, Conflict, NotFound, Preconditions
from ironbell.api.core import LEASE
from ironbell.base.clock import SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.cli.pivot.names import JOURNAL, JOURNAL_NAMESPACE
from ironbell.cli.pivot.site import SiteError
from ironbell.kube.leader import LeaderElection, LeaseSettings

T = TypeVar("T")
_PROC: Final = Path("/proc")
_START_TIME: Final = 19
"""Of the fields in /proc/PID/stat behind the program's name: when the process began."""


def identity(pid: int, random: str) -> str:
    """Who holds the Lease: this start of this machine, and the process with its beginning; `random` tells the rest."""
    return f"{_place()}.{pid}.{_began(pid)}.{random}"


def is_dead(holder: str) -> bool:
    """Whether a holder was a process of this machine that is no more; False where that cannot be known."""
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
        return False  # it is another account's
    return _began(int(pid)) not in ("", began)


def _place() -> str:
    """Where a process's number means the same: this start of this machine, and this container of it."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return boot + "".join(filter(str.isdecimal, (_PROC / "self/ns/pid").readlink().name))
    return ""


def _began(pid: int) -> str:
    with suppress(OSError, IndexError):
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[_START_TIME]
    return ""


async def alone(api: Api, random: str, tell: Callable[[str], None], work: Callable[[], Awaitable[T]]) -> T:
    """Do the work as the only one who does.

    Raises:
        SiteError: the Lease was lost.
    """
    await _bury(api, tell)
    lease = LeaseSettings(
        JOURNAL_NAMESPACE, JOURNAL, identity(os.getpid(), random), duration_s=10.0, renew_s=6.0, retry_s=1.0
    )
    found: list[T] = []

    async def working() -> None:
        found.append(await work())

    await LeaderElection(api, lease, SteadyClock(), SystemRandomness()).run(working)
    if not found:
        raise SiteError("another run took over, or the target did not answer for too long; run the same command again")
    return found[0]


async def _bury(api: Api, tell: Callable[[str], None]) -> None:
    """Take the Lease of a dead run away."""
    try:
        body = await api.get(LEASE.collection, JOURNAL_NAMESPACE, JOURNAL)
    except NotFound:
        return
    found = msgspec.json.decode(body)
    holder = found.get("spec", {}).get("holderIdentity") or ""
    if not holder:
        return
    if not is_dead(holder):
        tell("another run may be at work: waiting for its end")
        return
    meta = found["metadata"]
    with suppress(NotFound, Conflict):
        same = Preconditions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        await api.delete(LEASE.collection, JOURNAL_NAMESPACE, JOURNAL, preconditions=same)
