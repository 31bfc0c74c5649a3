"""The manager: informers, controllers and what they share, in one event loop.

`run` starts the informers, waits until those a controller reads have synced, then starts its workers. `stop` ends it
gracefully: queues close, what is being written is finished, and only what has not ended after `grace_s` is cancelled.

    manager = Manager(api, component="ironbell")
    manager.add(Controller(WorkflowReconciler(), performers={...}))
    await manager.run()
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from ironbell.api.client import Api
from ironbell.api.core.kinddefinition import KIND_DEFINITION, KindDefinition
from ironbell.api.kind import Collection
from ironbell.api.meta import Resource
from ironbell.base.clock import Clock, SystemClock
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.cache.caches import Informers
from ironbell.kube.cache.dynamic import DynamicInformers
from ironbell.kube.decision import Decision, Key
from ironbell.kube.manager.controller import Controller, RunningController, Surroundings
from ironbell.kube.manager.events import EventRecorder
from ironbell.kube.manager.leader import LeaderElection
from ironbell.kube.manager.queue import Load
from ironbell.kube.manager.tally import Tally
from ironbell.kube.manager.turn import Turn

log = structlog.get_logger()

GRACE_S = 3.0
LOST_S = 0.1
"""For workers that wait to notice that there is no more to do."""
SWEEP_S = 60.0
RESYNC_S = 36_000.0
"""Every object is looked at again after ten hours even if nothing changed, as a net under forgotten watches."""


class Manager:
    """Runs controllers over one API."""

    def __init__(
        self,
        api: Api,
        *,
        component: str = "ironbell",
        namespace: str = "",
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        dry_run: Callable[[str, Key, Decision], None] | None = None,
        lag_s: Callable[[], float] | None = None,
        resync_s: float = RESYNC_S,
        grace_s: float = GRACE_S,
    ) -> None:
        """
        Args:
            api: under the identity that reads for all controllers, and writes for those that have none of their own.
            component: who events come from.
            namespace: look at this namespace only; empty for all.
            dry_run: is given each decision (controller, key, decision) instead of its being carried out.
            lag_s: for tests, a delay before each change reaches a cache.
            resync_s: how often every object is looked at without a reason.
            grace_s: how long workers may take at the end for what they are at.
        """
        self._clock = clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self.informers = Informers(api, namespace=namespace, randomness=self._randomness, lag_s=lag_s)
        self._events = EventRecorder(api, component, clock=self._clock, randomness=self._randomness)
        self._dynamic = DynamicInformers(self.informers, self._clock)
        self._around = Surroundings(
            api,
            self.informers,
            self._dynamic,
            self._clock,
            self._randomness,
            self._events.emit,
            Turn(self._clock),
            Load(),
            dry_run=dry_run,
        )
        self._resync_s = resync_s
        self._grace_s = grace_s
        self._election: LeaderElection | None = None
        self._controllers: list[tuple[RunningController, int]] = []
        self._tallies: dict[Collection, Tally] = {}
        self._stopping = asyncio.Event()
        self._ready = asyncio.Event()
        self._caches = asyncio.Event()

    def add(self, controller: Controller) -> None:
        """Add a controller, before `run`. The objects of its kind are counted in the metrics."""
        self._controllers.append((RunningController(controller, self._around), controller.workers))
        kind = controller.reconciler.declaration.kind
        if kind.has_status and kind.collection not in self._tallies:
            self._tallies[kind.collection] = Tally(self.informers.of(kind))

    async def wait_ready(self) -> None:
        """Wait until all caches have synced and all workers run. Cancellation point."""
        await self._ready.wait()

    @property
    def has_synced(self) -> bool:
        """Return whether all caches have been filled, so that this process could work at once."""
        return self._caches.is_set()

    @property
    def is_idle(self) -> bool:
        """Return whether no controller has a key to reconcile, now or later."""
        return all(controller.queue.is_idle for controller, _workers in self._controllers)

    @property
    def looked_up(self) -> set[Collection]:
        """The kinds known only at run time that are being watched."""
        return self._dynamic.kinds

    def resync(self) -> None:
        """Let every object of every controller be looked at again, after what is fresh."""
        for controller, _workers in self._controllers:
            controller.resync()

    def stop(self) -> None:
        """Let `run` come to its end."""
        self._stopping.set()

    async def run(self, election: LeaderElection | None = None) -> None:
        """Run until `stop`, or until cancelled.

        With an election the caches are filled at once and kept current, and the workers start when the Lease is won.
        It is handed back when they have ended. Where it is lost, this returns with `election.was_lost`.
        """
        async with asyncio.TaskGroup() as background:
            tasks = [
                background.create_task(informer.run(), name=f"informer {informer.kind}") for informer in self.informers
            ]
            tasks.append(background.create_task(self._events.run(), name="events"))
            tasks.append(background.create_task(self._resync(), name="resync"))
            tasks.append(background.create_task(self._sweep(), name="sweep"))
            for definitions in self.informers.find(KIND_DEFINITION.collection):
                definitions.add_handler(self._defined)
            self._dynamic.run(
                lambda informer: background.create_task(informer.run(), name=f"informer {informer.kind}, looked up")
            )
            try:
                if await self._synced():
                    await (self._work() if election is None else self._lead(election))
            finally:
                self._dynamic.stop()
                for task in tasks:
                    task.cancel()
                for controller, _workers in self._controllers:
                    await controller.close()

    async def _lead(self, election: LeaderElection) -> None:
        leading = asyncio.create_task(election.run(self._work), name="election")
        stopping = asyncio.create_task(self._stopping.wait(), name="stopping")
        self._election = election
        try:
            await asyncio.wait([leading, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not election.is_leader:
                leading.cancel()  # it waits for the Lease, and would wait on
            await asyncio.wait([leading])
            if not leading.cancelled():
                leading.result()
        finally:
            stopping.cancel()
            if not leading.done():
                leading.cancel()
                await asyncio.gather(leading, return_exceptions=True)

    async def _work(self) -> None:
        for controller, _workers in self._controllers:
            controller.listen()
        workers = [
            asyncio.create_task(controller.work(), name=f"{controller.name} worker {number}")
            for controller, count in self._controllers
            for number in range(count)
        ]
        self._ready.set()
        stopping = asyncio.create_task(self._stopping.wait(), name="stopping")
        try:
            await asyncio.wait([stopping, *workers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._finish(workers)

    async def _synced(self) -> bool:
        """Wait for the caches; False if the manager was stopped before."""
        stopping = asyncio.create_task(self._stopping.wait(), name="stopping")
        syncing = asyncio.gather(*(informer.wait_synced() for informer in self.informers))
        either: list[asyncio.Future[Any]] = [stopping, syncing]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if syncing.done():
                self._caches.set()
            return syncing.done()
        finally:
            stopping.cancel()
            syncing.cancel()
            # its outcome is nobody's business, and asyncio wants somebody to have looked at it
            syncing.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _finish(self, workers: list[asyncio.Task[None]]) -> None:
        """Let workers end what they are at; a worker that broke is an error of the whole. After the Lease is lost what
        they are at is cut off: another process may begin."""
        for controller, _count in self._controllers:
            controller.queue.close()
        grace_s = LOST_S if self._election is not None and self._election.was_lost else self._grace_s
        _done, late = await asyncio.wait(workers, timeout=grace_s) if workers else (set(), set())
        for worker in late:
            log.warning("worker did not end in time", worker=worker.get_name())
            worker.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for worker in workers:
            if not worker.cancelled() and (defect := worker.exception()) is not None:
                raise defect

    def _defined(self, old: Resource | None, new: Resource | None) -> None:
        changed = new or old
        if isinstance(changed, KindDefinition):
            self._dynamic.retry(changed.spec.group, changed.spec.names.plural)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self._dynamic.sweep()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._resync_s)
            self.resync()
