"""One QEMU machine and a real API server: what `ironbell up` does in one place, as a cluster's pods do it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.client import NotFound
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.app.site.up import LAB_CONSOLES
from ironbell.demo.run import Demo
from ironbell.demo.site import RunningSite
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.files import LabState, NoLabError, read_state
from support.network.forward import forwarded
from support.servers.installation import Artefacts, Installation
from support.site.components import FAST_LEASE, OnCluster, Process, unchecked_references
from support.waiting import until

CONTROLLERS = ("tink-controller", "rufio")
LAB_S = 60.0
KILL_EVERY_S = 20.0


@asynccontextmanager
async def cluster_installation(
    cluster: OnCluster, folder: Path, artefacts: Artefacts, *, firmware: str, replicas: int = 1
) -> AsyncIterator[Installation]:
    """A powered-off machine and all components; with several replicas, leaders are killed again and again."""
    demo = Demo(firmware, artefacts.osie, artefacts.image, folder)
    async with AsyncExitStack() as stack:
        # the lab's manifests confirm where its BMCs are
        stack.enter_context(unchecked_references(cluster))
        lab = await stack.enter_async_context(_lab(demo.write_lab_file(), folder))
        network = Path(lab.network_namespace).name
        stack.enter_context(forwarded(urlsplit(cluster.api.server).port or 0, network))
        words = [word for word in CONTROLLERS for _ in range(replicas)]
        wire, *controllers = await asyncio.gather(
            asyncio.to_thread(cluster.run, "wire", *_wire(lab, folder, artefacts), namespace=network),
            *(asyncio.to_thread(cluster.run, word, *FAST_LEASE) for word in words),
        )
        running = [wire, *controllers]
        stack.push_async_callback(_end, running)
        api = await stack.enter_async_context(HttpApi(from_kubeconfig(cluster.admin)))
        seen = Installation(RunningSite(folder, cluster.admin, lab, wire.log), Client(api), artefacts.image)
        events, workflows = Informer(api, core.EVENT), Informer(api, WORKFLOW)
        events.add_handler(seen.saw_event)
        workflows.add_handler(seen.saw_workflow)
        tasks = [asyncio.create_task(informer.run()) for informer in (events, workflows)]
        if replicas > 1:
            tasks.append(asyncio.create_task(_kill_leaders(cluster, running)))
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await _empty(seen.client)


def _wire(lab: LabState, folder: Path, artefacts: Artefacts) -> list[str]:
    consoles = [word for console in LAB_CONSOLES for word in ("--console", console)]
    served = ["--osie-dir", str(artefacts.osie), "--artefacts", f"images={artefacts.image.parent}"]
    return ["--interface", lab.bridge, "--force", "--data-dir", str(folder / "wire"), *served, *consoles]


@asynccontextmanager
async def _lab(file: Path, folder: Path) -> AsyncIterator[LabState]:
    """The lab's process alone."""
    command = [sys.executable, "-m", "ironbell.lab.process", "--file", str(file), "--data-dir", str(folder / "lab")]
    with (folder / "lab.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=log, stderr=log)
    assert process.stdin is not None
    process.stdin.write(b"{}\n")
    try:
        async with asyncio.timeout(LAB_S):
            state = await _state(folder)
        yield state
    finally:
        process.stdin.close()
        await process.wait()


async def _state(folder: Path) -> LabState:
    return await until(lambda: read_state(folder), ignored=(NoLabError,))


async def _kill_leaders(cluster: OnCluster, processes: list[Process]) -> None:
    """kill -9 of each component's leader, and a new replica in its place."""
    while True:
        await asyncio.sleep(KILL_EVERY_S)
        for process in [process for process in processes if process.is_running]:
            if await asyncio.to_thread(lambda process=process: process.leads):
                process.kill()
                processes.append(await asyncio.to_thread(cluster.run, *process.arguments))


async def _end(processes: list[Process]) -> None:
    for process in processes:
        if process.is_running:
            assert await asyncio.to_thread(process.stop) == 0, process.end_of_log()


async def _empty(client: Client) -> None:
    """Leave nothing for other tests, while the controllers are there to let go."""
    for kind in (WORKFLOW, JOB, TASK, MACHINE, HARDWARE, TEMPLATE, core.SECRET):
        for found in (await client.list(kind, "default")).items:
            with contextlib.suppress(NotFound):
                await client.delete(kind, *found.key)

    async def are_deleted() -> bool:
        return not (await client.list(WORKFLOW, "default")).items

    await until(are_deleted)
