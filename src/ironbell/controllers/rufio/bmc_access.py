"""Access to BMCs: one session per BMC, one call at a time on each session, and a limited number of calls in all.

BMCs allow a handful of sessions and serve one request at a time; a client that opens a session per request locks out
everybody else. A session is therefore kept while it is used, closed after an idle time, and opened again after an error
or when the connection or a Secret has changed. A login that is rejected on a kept session only means that the session
expired: the call is repeated once with a new session. No password is sent to an address that the target's pin does not
have.

Lifecycle: created with the API from which Secrets are read and the function that opens sessions; `close` logs out.

Failure modes: `BmcError`, always, as drivers raise it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

import structlog

from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import PowerState
from ironbell.api.client import Api, ApiError
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.base.errors import IronbellError
from ironbell.bmc.driver import (
    AuthenticationError,
    OutcomeUnknownError,
    RejectedError,
    UnconfirmedAddressError,
    UnreachableError,
    UnsupportedError,
)
from ironbell.contract.servers.bmc_service import service_of
from ironbell.controllers.rufio.operation import Operation
from ironbell.controllers.rufio.secret import Credentials, read_credentials
from ironbell.controllers.rufio.target import (
    CALL_TIMEOUT_S,
    CLOSE_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    INVENTORY_CALL_TIMEOUT_S,
    TURN_TIMEOUT_S,
    Target,
)

T = TypeVar("T")
AT_ONCE: Final = 64
IDLE_S: Final = 30.0

log = structlog.get_logger()


class Session(Protocol):
    """An open session with one BMC. Everything raises `BmcError`."""

    async def power_state(self) -> PowerState: ...

    async def inventory(self) -> Inventory:
        """The hardware of the server."""
        ...

    async def operate(self, operation: Operation) -> None:
        """Carry out an operation. Returns when the BMC has accepted it.

        Raises:
            OutcomeUnknownError: the request was sent, and no response came.
        """
        ...

    async def close(self) -> None:
        """Log out."""
        ...


class Connect(Protocol):
    """Opens a session."""

    async def __call__(self, connection: Connection, credentials: Credentials) -> Session: ...


@dataclass(eq=False)
class _Bmc:
    """The session with one BMC, its users and its idle timer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    session: Session | None = None
    target: Target | None = None
    timer: asyncio.TimerHandle | None = None


class BmcAccess:
    """All sessions of this process."""

    def __init__(
        self,
        api: Api,
        connect: Connect,
        *,
        at_once: int = AT_ONCE,
        idle_s: float = IDLE_S,
        turn_s: float = TURN_TIMEOUT_S,
    ) -> None:
        self._api = api
        self._connect = connect
        self._slots = asyncio.Semaphore(at_once)
        self._idle_s = idle_s
        self._turn_s = turn_s
        self._bmcs: dict[str, _Bmc] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def power_state(self, target: Target) -> PowerState:
        """Query the power state. Cancellation point.

        Raises:
            BmcError: the query failed.
        """
        return await self._use(target, lambda session: session.power_state())

    async def inventory(self, target: Target) -> Inventory:
        """Query the hardware of the server. Cancellation point.

        Raises:
            BmcError: the query failed.
        """
        return await self._use(target, lambda session: session.inventory(), limit_s=INVENTORY_CALL_TIMEOUT_S)

    async def operate(self, target: Target, operation: Operation) -> None:
        """Carry out an operation. Cancellation point; if cancelled, the request may or may not have been sent.

        Raises:
            BmcError: the operation failed, or its outcome is unknown (`OutcomeUnknownError`).
        """
        await self._use(target, lambda session: session.operate(operation), changes=True)

    async def close(self) -> None:
        """Log out of all BMCs. Cancellation point."""
        for bmc in self._bmcs.values():
            self._drop(bmc)
        self._bmcs.clear()
        if self._closing:
            await asyncio.wait(self._closing, timeout=CLOSE_TIMEOUT_S)

    async def _use(
        self,
        target: Target,
        call: Callable[[Session], Awaitable[T]],
        *,
        changes: bool = False,
        limit_s: float | None = None,
    ) -> T:
        name = _name(target)
        bmc = self._bmcs.setdefault(name, _Bmc())
        bmc.users += 1
        try:
            await self._turn(bmc)
            try:
                async with self._slots:
                    bounded_s = CALL_TIMEOUT_S if limit_s is None else limit_s
                    return await self._call(bmc, target, call, changes=changes, limit_s=bounded_s)
            finally:
                bmc.lock.release()
        finally:
            bmc.users -= 1
            if not bmc.users:
                self._release(name, bmc)

    async def _turn(self, bmc: _Bmc) -> None:
        try:
            async with asyncio.timeout(self._turn_s):
                await bmc.lock.acquire()
        except TimeoutError:
            message = f"the BMC was busy with other operations for {self._turn_s:g} s"
            raise UnreachableError(message) from None

    async def _call(
        self, bmc: _Bmc, target: Target, call: Callable[[Session], Awaitable[T]], *, changes: bool, limit_s: float
    ) -> T:
        if bmc.timer is not None:
            bmc.timer.cancel()
        if bmc.session is not None and bmc.target == target:
            try:
                return await self._bounded(bmc, call, changes=changes, limit_s=limit_s)
            except AuthenticationError:
                pass
        self._drop(bmc)
        await self._open(bmc, target)
        return await self._bounded(bmc, call, changes=changes, limit_s=limit_s)

    async def _open(self, bmc: _Bmc, target: Target) -> None:
        connection = target.connection
        problem = target.pin.problem(connection) if target.pin is not None else ""
        if problem:
            raise UnconfirmedAddressError(problem)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                credentials = await read_credentials(self._api, connection, target.namespace)
                bmc.session = await self._connect(connection, credentials)
        except TimeoutError:
            message = f"no connection to the BMC at {connection.host} within {CONNECT_TIMEOUT_S:g} s"
            raise UnreachableError(message) from None
        except ApiError as error:
            message = f"cannot read the Secret of the BMC at {connection.host}: {error.message}"
            raise UnreachableError(message) from None
        bmc.target = target

    async def _bounded(self, bmc: _Bmc, call: Callable[[Session], Awaitable[T]], *, changes: bool, limit_s: float) -> T:
        session = bmc.session
        if session is None:
            raise UnreachableError("the session was closed")
        healthy = False
        try:
            async with asyncio.timeout(limit_s):
                answer = await call(session)
            healthy = True
            return answer
        except TimeoutError:
            kind = OutcomeUnknownError if changes else UnreachableError
            raise kind(f"no response from the BMC within {limit_s:g} s") from None
        except IronbellError as error:
            healthy = isinstance(error, RejectedError | UnsupportedError)
            raise
        finally:
            if not healthy:
                self._drop(bmc)

    def _release(self, name: str, bmc: _Bmc) -> None:
        """Close the session of a BMC without users after the idle time; forget a BMC without a session."""
        if self._bmcs.get(name) is not bmc:
            self._drop(bmc)
        elif bmc.session is None:
            del self._bmcs[name]
        else:
            bmc.timer = asyncio.get_running_loop().call_later(self._idle_s, self._expire, name, bmc)

    def _expire(self, name: str, bmc: _Bmc) -> None:
        if not bmc.users and self._bmcs.get(name) is bmc:
            del self._bmcs[name]
            self._drop(bmc)

    def _drop(self, bmc: _Bmc) -> None:
        if bmc.timer is not None:
            bmc.timer.cancel()
            bmc.timer = None
        session, bmc.session, bmc.target = bmc.session, None, None
        if session is None:
            return
        task = asyncio.get_running_loop().create_task(_log_out(session), name="bmc log out")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _log_out(session: Session) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await session.close()
    except (TimeoutError, IronbellError) as error:
        log.debug("bmc session not closed", error=str(error))


def _name(target: Target) -> str:
    """Identity of a BMC: its host, the driver and its port, and its system if it manages several."""
    service = service_of(target.connection)
    return f"{service.host.lower()} {service.driver.options} {service.port} {service.system}"
