"""Leader election: one holder of a Lease at a time.

The holder renews every `retry_s`; who is not the holder takes the Lease once its record has not changed for
`duration_s` by the watcher's own clock, so clocks of different machines need not agree. A holder that cannot renew for
`renew_s` gives up before anybody else may begin. Every write carries the resourceVersion that was read: of several who
try, one wins.

Who waits also watches the Lease, so that one that is handed back is taken at once. Where it may not be watched, or the
watch breaks, looking every `retry_s` is enough.

Source: kubernetes/client-go: tools/leaderelection/leaderelection.go; coordination.k8s.io/v1 Lease.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from ironbell.api.client import AlreadyExists, Api, ApiError, Conflict, EventType, NotFound, Selector, WatchEvent
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock, rfc3339_micro
from ironbell.base.randomness import Randomness
from ironbell.kube.manager import metrics

LEASES = Collection("coordination.k8s.io", "v1", "leases", namespaced=True)

log = structlog.get_logger()


@dataclass(frozen=True)
class LeaseSettings:
    """Name of the Lease, and the times of the protocol; `duration_s` > `renew_s` > `retry_s`."""

    namespace: str
    name: str
    identity: str
    duration_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Lease(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _decode(body: bytes) -> _Lease:
    return msgspec.json.decode(body, type=_Lease)


def _holder(event: WatchEvent) -> str:
    """Holder of the Lease after this."""
    return "" if event.type is EventType.DELETED else _decode(event.body).spec.holder_identity or ""


@dataclass
class LeaderElection:
    """Takes part in the election for one Lease."""

    api: Api
    settings: LeaseSettings
    clock: Clock
    randomness: Randomness
    is_leader: bool = field(default=False, init=False)
    was_lost: bool = field(default=False, init=False)
    """Whether the Lease was held and could not be kept."""
    _seen: tuple[str, float] = field(default=("", 0.0), init=False)
    """The record's version last seen, and when it was first seen."""

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease, then run `work` while it is held.

        Returns when `work` returns (the Lease is then released) or when the Lease is lost (`work` is cancelled and has
        ended by then). Cancellation point; cancelled, the Lease is released.
        """
        gauge = metrics.is_leader.labels(self.settings.name)
        gauge.set(0)
        await self._acquire()
        gauge.set(1)
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._keep(), name=f"lease {self.settings.name}")
        either: list[asyncio.Future[Any]] = [working, renewing]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in either:
                task.cancel()
            results = await asyncio.gather(working, return_exceptions=True)
            await asyncio.gather(renewing, return_exceptions=True)
            gauge.set(0)
            await self._release()
        if isinstance(results[0], Exception):
            raise results[0]

    async def _acquire(self) -> None:
        handed_back = asyncio.Event()
        watching = asyncio.create_task(self._watch(handed_back), name=f"watch of lease {self.settings.name}")
        try:
            while not await self._try(self.settings.retry_s):
                pause_s = self.settings.retry_s * (1 + self.randomness.fraction() / 5)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await handed_back.wait()
                handed_back.clear()
        except asyncio.CancelledError:
            await self._release()  # a try that was cut short may have succeeded
            raise
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        self.is_leader = True
        log.info("leading", lease=self.settings.name, identity=self.settings.identity)

    async def _watch(self, handed_back: asyncio.Event) -> None:
        """Signal when the Lease has no holder, until cancelled."""
        s = self.settings
        selector = Selector(fields=f"metadata.name={s.name}")
        while True:
            try:
                events = self.api.changes(LEASES, s.namespace, resource_version=self._seen[0], selector=selector)
                async for event in events:
                    if event.type is not EventType.BOOKMARK and not _holder(event):
                        handed_back.set()
            except (ApiError, msgspec.MsgspecError) as error:
                log.debug("lease not watched", lease=s.name, message=str(error))
            await asyncio.sleep(s.retry_s)

    async def _keep(self) -> None:
        """Renew until that has failed for too long."""
        deadline_s = self.clock.monotonic() + self.settings.renew_s
        while (left_s := deadline_s - self.clock.monotonic()) > 0:
            await asyncio.sleep(min(self.settings.retry_s, left_s))
            left_s = deadline_s - self.clock.monotonic()
            started_s = self.clock.monotonic()
            if left_s > 0 and await self._try(min(self.settings.retry_s, left_s)):
                deadline_s = started_s + self.settings.renew_s
        self.is_leader = False
        self.was_lost = True
        log.warning("lease lost", lease=self.settings.name, identity=self.settings.identity)

    async def _try(self, timeout_s: float) -> bool:
        """Take or renew the Lease once; whether we hold it now."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._take()
        except (Conflict, AlreadyExists):
            return False
        except NotFound as error:
            namespace = self.settings.namespace
            remedy = f"Is there a Namespace {namespace}? Create it, or name another by --lease-namespace."
            log.warning("lease not created", lease=self.settings.name, message=str(error), remedy=remedy)
            return False
        except (ApiError, TimeoutError) as error:
            log.warning("lease not reached", lease=self.settings.name, message=str(error))
            return False

    async def _take(self) -> bool:
        s = self.settings
        try:
            lease = _decode(await self.api.get(LEASES, s.namespace, s.name))
        except NotFound:
            await self.api.create(LEASES, s.namespace, self._body("", _Spec(), fresh=True))
            return True
        is_holder = lease.spec.holder_identity == s.identity
        if not is_holder and lease.spec.holder_identity and not self._expired(lease):
            return False
        body = self._body(lease.metadata.resource_version, lease.spec, fresh=not is_holder)
        await self.api.replace(LEASES, s.namespace, s.name, body)
        return True

    def _expired(self, lease: _Lease) -> bool:
        version, now_s = lease.metadata.resource_version, self.clock.monotonic()
        if version != self._seen[0]:
            self._seen = (version, now_s)
        return now_s - self._seen[1] > (lease.spec.lease_duration_seconds or self.settings.duration_s)

    def _body(self, version: str, old: _Spec, *, fresh: bool, holder: str | None = None) -> bytes:
        now = rfc3339_micro(self.clock.now())
        transitions = old.lease_transitions or 0
        spec = {
            "holderIdentity": self.settings.identity if holder is None else holder,
            "leaseDurationSeconds": math.ceil(self.settings.duration_s),
            "acquireTime": now if fresh else old.acquire_time,
            "renewTime": now,
            "leaseTransitions": transitions + 1 if fresh and version else transitions,
        }
        metadata = {"name": self.settings.name, "namespace": self.settings.namespace, "resourceVersion": version}
        return msgspec.json.encode(
            {
                "apiVersion": LEASES.api_version,
                "kind": "Lease",
                "metadata": {field: value for field, value in metadata.items() if value},
                "spec": spec,
            }
        )

    async def _release(self) -> None:
        """Hand the Lease back at once, so that nobody has to wait for it to expire."""
        self.is_leader = False
        s = self.settings
        try:
            async with asyncio.timeout(s.retry_s):
                lease = _decode(await self.api.get(LEASES, s.namespace, s.name))
                if lease.spec.holder_identity == s.identity:
                    body = self._body(lease.metadata.resource_version, lease.spec, fresh=False, holder="")
                    await self.api.replace(LEASES, s.namespace, s.name, body)
        except (ApiError, TimeoutError) as error:
            log.info("lease not released", lease=s.name, message=str(error))
