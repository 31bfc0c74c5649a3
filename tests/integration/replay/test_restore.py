"""The management cluster is restored from a backup while its machines run: nothing that runs is touched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from ironbell.api.cluster import MACHINE
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import Row
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from ironbell.lab.sim.cluster.host import Host
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capi.site import cluster_documents, site

KEY = ("default", "one")
LATER_S = 1800


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


class Restorable:
    """A site of which backups are taken."""

    def __init__(self, opened: ReplaySite, stack: AsyncExitStack) -> None:
        self.site, self._stack = opened, stack
        self.touched: list[str] = []
        opened.cloud.watch_releases(lambda host: self.touched.append(f"released {host.plan.key[1]}"))

    def backup(self) -> Sequence[Row]:
        return self.site.server.context.store.contents()

    async def restore(self, contents: Sequence[Row]) -> None:
        kinds = ClusterKinds()
        server = await self._stack.enter_async_context(
            ApiServer.open(
                None,
                clock=self.site.clock,
                randomness=SeededRandomness(9),
                compile_rule=compile_rule,
                conversions=kinds.conversions,
                contents=contents,
            )
        )
        kinds.join(server)
        await self.site.restore(server)

    async def want(self, control_planes: int, workers: int, **more: Any) -> None:
        documents = cluster_documents(control_planes=control_planes, workers=workers, health_checks=True, **more)
        await self.site.apply(documents)
        await self.until_running(control_planes + workers, **more)

    async def until_running(self, count: int, version: str = "v1.34.0") -> None:
        async def look() -> bool:
            machines = await self.site.all(MACHINE)
            good = [one for one in machines if one.status.phase == "Running" and one.spec.version == version]
            return len(good) == len(machines) == count

        await self.site.until(look, within_s=1800, message=lambda: f"{count} Machines do not run")

    async def machines(self) -> dict[str, str]:
        return {one.metadata.name: one.metadata.uid for one in await self.site.all(MACHINE)}

    def hosts(self) -> dict[str, Host]:
        return dict(self.site.cloud.hosts)

    def members(self) -> set[str]:
        return {member.name for member in self.site.cloud.clusters[KEY].etcd.members}

    def nodes(self) -> dict[str, str]:
        entries = self.site.cloud.clusters[KEY].server.context.store.objects("nodes").entries()
        return {one.name: one.decode()["metadata"]["uid"] for one in entries}


@asynccontextmanager
async def restorable() -> AsyncIterator[Restorable]:
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(site())
        yield Restorable(opened, stack)


@pytest.mark.soak
def test_what_runs_as_the_backup_has_it_goes_on() -> None:
    async def main() -> None:
        async with restorable() as one:
            await one.want(3, 2)
            contents = one.backup()
            hosts, machines, nodes = one.hosts(), await one.machines(), one.nodes()
            await asyncio.sleep(LATER_S)
            await one.restore(contents)
            await asyncio.sleep(LATER_S)
            await one.until_running(5)
            assert await one.machines() == machines
            assert (one.hosts(), one.nodes(), one.touched) == (hosts, nodes, [])

    run(main())


def test_machines_that_are_younger_than_the_backup_are_left_alone() -> None:
    async def main() -> None:
        async with restorable() as one:
            await one.want(1, 1)
            contents, machines = one.backup(), await one.machines()
            await one.want(3, 3)
            hosts, nodes, members = one.hosts(), one.nodes(), one.members()
            await one.restore(contents)
            await asyncio.sleep(LATER_S)
            assert await one.machines() == machines
            assert (one.hosts(), one.nodes(), one.touched) == (hosts, nodes, [])
            assert one.members() == members
            assert one.site.cloud.clusters[KEY].answers

    run(main())


@pytest.mark.soak
def test_after_an_upgrade_nothing_that_runs_is_touched_by_an_older_backup() -> None:
    async def main() -> None:
        async with restorable() as one:
            await one.want(3, 2)
            contents = one.backup()
            await one.want(3, 2, version="v1.35.1")
            hosts, nodes, members = one.hosts(), one.nodes(), one.members()
            one.touched.clear()
            await one.restore(contents)
            await asyncio.sleep(LATER_S)
            assert hosts.items() <= one.hosts().items()
            assert not [line for line in one.touched if line.split()[1] in nodes]
            assert nodes.items() <= one.nodes().items()
            assert members <= one.members()
            assert one.site.cloud.clusters[KEY].answers

    run(main())
