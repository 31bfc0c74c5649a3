"""Several replicas of the provider reach for the same servers, and are killed: the write on the Hardware decides.

Every revision of every Hardware and TinkerbellMachine is looked at, none is sampled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.apiserver.store.entry import Change
from ironbell.contract.servers.claim import HELD, claim_of
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.provisioner.lifecycle.names import QUEUED_SINCE
from support.servers.captreplay import NAMESPACE, CaptSite, capt_site

_HARDWARE = f"{HARDWARE.plural}.{HARDWARE.group}"
_MACHINES = f"{TINKERBELL_MACHINE.plural}.{TINKERBELL_MACHINE.group}"


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


@dataclass
class Revisions:
    """What the store said, revision by revision, and what of it must not be."""

    broken: list[str] = field(default_factory=list)
    looked_at: int = 0
    claims: int = 0
    user_data_of: dict[str, str] = field(default_factory=dict)
    written: Counter[str] = field(default_factory=Counter)

    def __call__(self, change: Change) -> None:
        if change.entry.resource == _HARDWARE:
            self._hardware(change)
        elif change.entry.resource == _MACHINES:
            self._machine(change)

    def _hardware(self, change: Change) -> None:
        self.looked_at += 1
        new = HARDWARE.convert(change.entry.decode())
        old = HARDWARE.convert(change.previous.decode()) if change.previous is not None else None
        before, after = claim_of(old) if old is not None else None, claim_of(new)
        at = f"revision {change.entry.version}: Hardware {new.metadata.name}"
        if before is not None and after is not None and before != after:
            self.broken.append(f"{at} went from {before} {before.uid} to {after} {after.uid} without being given back")
        if before is None and after is not None:
            self.claims += 1
            if HELD in new.metadata.annotations:
                self.broken.append(f"{at} was taken, and is held")
        if after is not None and new.spec.user_data is not None:
            other = self.user_data_of.setdefault(after.uid, new.metadata.name)
            if other != new.metadata.name:
                self.broken.append(f"{at} was given the user data that {other} has")

    def _machine(self, change: Change) -> None:
        name = change.entry.name
        self.written[name] += 1
        new = TINKERBELL_MACHINE.convert(change.entry.decode()).spec.hardware_name
        old = ""
        if change.previous is not None:
            old = TINKERBELL_MACHINE.convert(change.previous.decode()).spec.hardware_name
        if old and new != old:
            self.broken.append(f"revision {change.entry.version}: {name} had {old}, and now has {new or 'none'}")


async def bijection(site: CaptSite, count: int) -> None:
    """Each machine has one server, and each server that is taken one machine."""
    machines = {obj.metadata.name: obj for obj in await site.all(TINKERBELL_MACHINE)}
    taken = [(hardware, claim) for hardware in await site.all(HARDWARE) if (claim := claim_of(hardware)) is not None]
    assert len(machines) == len(taken) == count
    for hardware, claim in taken:
        assert machines[claim.name].spec.hardware_name == hardware.metadata.name
        assert machines[claim.name].metadata.uid == claim.uid


async def all_ready(site: CaptSite, count: int) -> bool:
    machines = await site.all(TINKERBELL_MACHINE)
    taken = sum(claim_of(hardware) is not None for hardware in await site.all(HARDWARE))
    return len(machines) == taken == count and all(obj.status.ready for obj in machines)


async def race(seed: int, *, count: int, elected: bool, kills: int, churn: int) -> Revisions:
    """As many machines as servers, replicas that die, and some machines that go and come again."""
    async with capt_site(seed, replicas=3, elected=elected, lag_s=4.0) as site:
        revisions = Revisions()
        site.server.context.store.listen(revisions)
        for number in range(count):
            await site.add_server(f"s{number:03}")
        await asyncio.gather(*(site.add_machine(f"m{number:03}") for number in range(count)))

        async def trouble(number: int) -> None:
            replica = site.replicas[number]
            for turn in range(kills):
                await replica.kill_with_write(1 + (turn * 37 + number * 11 + seed * 7) % 60, within_s=20)

        async def come_and_go() -> None:
            for number in range(churn):
                await asyncio.sleep(7)
                name = f"m{number * 3 % count:03}"
                for kind in (TINKERBELL_MACHINE, MACHINE):
                    await site.client.delete(kind, NAMESPACE, name)
                await site.until(lambda name=name: _is_gone(site, name), what=f"the end of {name}")
                await site.add_machine(f"n{number:03}")

        await asyncio.gather(*(trouble(number) for number in range(3)), come_and_go())
        await site.until(lambda: all_ready(site, count), what=f"{count} ready machines")
        await bijection(site, count)
        assert sum(replica.kills for replica in site.replicas) == 3 * kills
        return revisions


async def _is_gone(site: CaptSite, name: str) -> bool:
    return name not in {obj.metadata.name for obj in await site.all(TINKERBELL_MACHINE)}


@pytest.mark.parametrize("elected", [False, True], ids=["all-work", "one-leads"])
def test_each_server_has_one_owner_at_every_revision(elected: bool) -> None:
    async def main() -> None:
        revisions = await race(1, count=60, elected=elected, kills=4, churn=3)
        assert not revisions.broken, "\n".join(revisions.broken)
        assert revisions.claims >= 60

    run(main())


@pytest.mark.soak
@pytest.mark.parametrize("elected", [False, True], ids=["all-work", "one-leads"])
@pytest.mark.parametrize("seed", range(2, 12))
def test_each_server_has_one_owner_over_many_seeds(seed: int, elected: bool) -> None:
    async def main() -> None:
        revisions = await race(seed, count=100, elected=elected, kills=12, churn=10)
        assert not revisions.broken, "\n".join(revisions.broken)

    run(main())


async def line_of(site: CaptSite, count: int) -> list[str]:
    """Machines that wait for servers of which there are none, in the order in which they stand."""
    for number in range(count):
        await site.add_machine(f"m{number:03}")

    async def all_in_line() -> bool:
        conditions = [obj.status.conditions for obj in await site.all(TINKERBELL_MACHINE)]
        return all(any(one.reason == "NoHardware" for one in each) for each in conditions)

    await site.until(all_in_line, what="the line")
    machines = await site.all(TINKERBELL_MACHINE)
    return [name for _, name in sorted((obj.metadata.annotations[QUEUED_SINCE], obj.metadata.name) for obj in machines)]


@pytest.mark.parametrize("waiting", [60, pytest.param(300, marks=pytest.mark.soak)])
def test_one_of_those_that_wait_is_woken_when_a_server_becomes_free(waiting: int) -> None:
    async def main() -> None:
        async with capt_site(1) as site:
            line = await line_of(site, waiting)
            await asyncio.sleep(400)
            revisions = Revisions()
            site.server.context.store.listen(revisions)
            await site.add_server("free")
            await asyncio.sleep(60)
            # the next one is first in line now, and reports that there is a server, which is claimed
            assert list(revisions.written) == line[:2], "others than the first two were written"
            assert revisions.claims == 1

    run(main())


def test_as_many_are_woken_as_servers_become_free_at_once() -> None:
    async def main() -> None:
        async with capt_site(1) as site:
            # the line's own look at all servers comes each five minutes: right after it there is the longest to wait
            line = await line_of(site, 10)
            await asyncio.sleep(10)
            await asyncio.gather(*(site.add_server(f"free-{number}") for number in range(4)))
            await asyncio.sleep(60)
            owners = [claim_of(hardware) for hardware in await site.all(HARDWARE)]
            assert sorted(owner.name for owner in owners if owner) == sorted(line[:4])

    run(main())
