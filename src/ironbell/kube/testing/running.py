"""Running controllers for real in a test: over any `Api`, on virtual or real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ironbell.api.client import Api
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.manager import Manager


@asynccontextmanager
async def running(api: Api, *controllers: Controller, **options: Any) -> AsyncIterator[Manager]:
    """A manager (made with `options`) that runs these controllers while the block does, and is stopped gracefully."""
    manager = Manager(api, **options)
    for controller in controllers:
        manager.add(controller)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(manager.run(), name="manager")
        async with asyncio.timeout(60):
            await manager.wait_ready()
        yield manager
        manager.stop()
        await task
