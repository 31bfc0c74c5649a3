"""Hosts of a made-up kind and TinkerbellMachines reach for the same servers: each server has one owner at a time, is
wiped before the next one has it, and is released when its owner is deleted. Every revision is looked at."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.cluster import MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.apiserver.store.entry import Change
from ironbell.contract.servers.claim import WIPED, claim_of
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.servers.captreplay import NAMESPACE, CaptSite, capt_site
from support.servers.demohosts import HOST, controllers

SERVERS, EACH = 6, 5
"""Servers, and owners of each kind: there are fewer servers than owners."""


@dataclass
class Revisions:
    """What happened to every server, revision by revision, and what of it must not be."""

    broken: list[str] = field(default_factory=list)
    owners: dict[str, list[str]] = field(default_factory=dict)
    """Kinds of the owners that each server had, in order."""
    _installed: set[str] = field(default_factory=set)
    """Servers on which something was installed since they were wiped last."""

    def __call__(self, change: Change) -> None:
        if change.entry.resource == f"{HARDWARE.plural}.{HARDWARE.group}":
            self._hardware(change)
        elif change.entry.resource == f"{WORKFLOW.plural}.{WORKFLOW.group}" and change.previous is None:
            workflow = WORKFLOW.convert(change.entry.decode())
            if not workflow.metadata.name.endswith("-wipe"):
                self._installed.add(workflow.spec.hardware_ref)

    def _hardware(self, change: Change) -> None:
        new = HARDWARE.convert(change.entry.decode())
        old = HARDWARE.convert(change.previous.decode()) if change.previous is not None else None
        before, after = claim_of(old) if old is not None else None, claim_of(new)
        name, at = new.metadata.name, f"revision {change.entry.version}: {new.metadata.name}"
        if before is not None and after is not None and before != after:
            self.broken.append(f"{at} went from {before} to {after} without being released")
        if before is None and after is not None:
            self.owners.setdefault(name, []).append(after.kind)
            if name in self._installed:
                self.broken.append(f"{at} was claimed by {after}, and is not wiped")
        if before is not None and after is None and name in self._installed:
            certificate = msgspec.json.decode(new.metadata.annotations.get(WIPED, "{}"))
            if not certificate.get("wiped") or new.spec.user_data is not None:
                self.broken.append(f"{at} was released, and is not wiped, or has user data")
            self._installed.discard(name)


async def add_host(site: CaptSite, name: str) -> None:
    """A Host that any server of the pool may serve, with its user data."""
    place, value = {"namespace": NAMESPACE, "name": name}, b64encode(b"#cloud-config\n").decode()
    await site.client.create(SECRET, {"metadata": place, "data": {"value": value}})
    await site.client.create(
        HOST, {"metadata": place, "spec": {"userData": name, "selector": {"matchLabels": {"pool": "a"}}}}
    )


async def delete(site: CaptSite, name: str) -> None:
    """Delete a Host or a machine, and wait until it is gone."""
    kinds = [HOST] if name.startswith("h") else [TINKERBELL_MACHINE, MACHINE]
    for kind in kinds:
        await site.client.delete(kind, NAMESPACE, name)

    async def is_gone() -> bool:
        return name not in {obj.metadata.name for obj in await site.all(kinds[0])}

    await site.until(is_gone, what=f"the end of {name}")


async def served(site: CaptSite) -> dict[str, str]:
    """The server of each owner that is ready, by the owner's name, checked against the claims."""
    ready = [obj for kind in (HOST, TINKERBELL_MACHINE) for obj in await site.all(kind) if obj.status.ready]
    claims = {claim.uid: hw.metadata.name for hw in await site.all(HARDWARE) if (claim := claim_of(hw)) is not None}
    found = {obj.metadata.name: claims.get(obj.metadata.uid, "") for obj in ready}
    assert all(found.values()), f"an owner is ready without a server: {found}"
    for obj in ready:
        assert obj.spec.provider_id == f"tinkerbell://{NAMESPACE}/{found[obj.metadata.name]}"
    return found


async def race(seed: int, *, kills: int, rounds: int) -> Revisions:
    """More owners than servers, processes that die, and owners that are deleted until all others are served."""
    others = (lambda _site, api: controllers(api),)
    async with capt_site(seed, replicas=2, lag_s=4.0, others=others, more_kinds=(HOST,)) as site:
        revisions = Revisions()
        site.server.context.store.listen(revisions)
        for number in range(SERVERS):
            await site.add_server(f"s{number}", labels={"pool": "a"})
        names = [f"{kind}{number}" for number in range(EACH) for kind in "hm"]

        async def arrive(name: str) -> None:
            await (add_host(site, name) if name.startswith("h") else site.add_machine(name))

        async def trouble(number: int) -> None:
            for turn in range(kills):
                await site.replicas[number].kill_with_write(1 + (turn * 13 + number * 5 + seed * 7) % 40, within_s=20)

        async def all_servers_serve() -> bool:
            return len(await served(site)) == SERVERS

        await asyncio.gather(*(arrive(name) for name in names), *(trouble(number) for number in range(3)))
        await site.until(all_servers_serve, what="every server has an owner that is ready")
        for turn in range(rounds):
            owners = await served(site)
            await delete(site, sorted(owners)[(turn * 5 + seed) % SERVERS])
            if turn >= 2 * EACH - SERVERS:
                await arrive(f"{'hm'[turn % 2]}{EACH + turn}")
            await site.until(all_servers_serve, what="the next owner has the server")
        remaining = [obj.metadata.name for kind in (HOST, TINKERBELL_MACHINE) for obj in await site.all(kind)]
        assert sorted(await served(site)) == sorted(remaining), "as many owners as servers are left, and all are served"
        for name in remaining:
            await delete(site, name)
        assert all(claim_of(hardware) is None for hardware in await site.all(HARDWARE))
        assert not [*await site.all(WORKFLOW), *await site.all(TEMPLATE)]
        return revisions


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 24))])
def test_each_server_has_one_owner_whatever_its_kind(seed: int) -> None:
    async def main() -> None:
        revisions = await race(seed, kills=4, rounds=8)
        assert not revisions.broken, "\n".join(revisions.broken)
        assert {"Host", "TinkerbellMachine"} == {kind for kinds in revisions.owners.values() for kind in kinds}
        assert any(len(set(kinds)) == 2 for kinds in revisions.owners.values()), "no server went from kind to kind"

    run(main())
