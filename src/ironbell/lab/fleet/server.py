"""One simulated server: power and boot order as its BMC sees them, firmware, in-memory OS, installed system.

Its lasting state is in its `ServerState`, which is stored before anything follows from it. A server that is on lives in
one task; power off ends that at once, and a restarted simulation continues what ran.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from ironbell.agent.execution import Ending, Job, Listener, Outcome
from ironbell.agent.logship import LogShipper
from ironbell.agent.loop import IDLE, Agent, Calls
from ironbell.agent.messages import Power
from ironbell.agent.rpc import CallError
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.ports import GRPC_PORT
from ironbell.base.randomness import Randomness
from ironbell.codec.proto import heartbeat_pb2, log_pb2, workflow_pb2
from ironbell.contract.servers.boot_token import KERNEL_ARGUMENT as TOKEN_ARGUMENT
from ironbell.kube.decision import Key
from ironbell.lab.fleet import actions
from ironbell.lab.fleet.catalogue import Server
from ironbell.lab.fleet.faults import Fault, Faults, strikes
from ironbell.lab.fleet.installed import kernel_arguments
from ironbell.lab.fleet.inventory import attributes
from ironbell.lab.fleet.link import Answer, Link, NoAnswerError
from ironbell.lab.fleet.state import AgentStart, Runs, ServerState, Store
from ironbell.lab.fleet.system import InstalledSystem
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.timing import Speed

RETRY_S: Final = 5.0
NETBOOT_S: Final = 60.0
"""Time for which firmware tries the network before it boots the disk: four DHCP requests of 4, 8, 16 and 32 s."""
_ONCE: Final = "Once"
_NETWORK: Final = frozenset({"Pxe", "UefiHttp"})

log = structlog.get_logger()


@dataclass(frozen=True)
class Surroundings:
    """The environment that all servers of a fleet share."""

    link: Link
    site: str
    """URL of the site's HTTP, which firmware learns by DHCP; DHCP itself is not simulated."""
    cloud: Cloud
    store: Store
    speed: Speed
    clock: Clock
    randomness: Randomness
    can_listen: Callable[[str], bool] = lambda _host: True
    """Whether the API of a cluster can be at an address."""
    cluster_at: Callable[[Endpoint], Key] = lambda endpoint: ("", str(endpoint))
    """The cloud's key of the cluster whose API has this address."""


_CANCEL_AGAIN_S: Final = 1.0
"""Time that a cancelled simulation may take to end."""


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended. Cancellation point.

    grpclib raises an error of its own in place of a cancellation if the connection is lost at that moment, so that a
    task which handles such errors goes on.
    """
    while tasks:
        for task in tasks:
            task.cancel()
        tasks = (await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S))[1]


@dataclass(frozen=True)
class _Watched:
    """The calls of an agent: its signs of life stop when it vanishes, and an answer without an action is noticed."""

    calls: Calls
    is_silent: Callable[[], bool]
    is_idle: Callable[[], None]

    async def get_action(self, request: workflow_pb2.ActionRequest) -> workflow_pb2.ActionResponse:
        try:
            return await self.calls.get_action(request)
        except CallError as error:
            if error.status in IDLE:
                self.is_idle()
            raise

    async def report(self, request: workflow_pb2.ActionStatusRequest) -> None:
        await self.calls.report(request)

    async def report_machine(self, request: log_pb2.MachineReport) -> None:
        await self.calls.report_machine(request)

    async def beat(self, request: heartbeat_pb2.BeatRequest) -> None:
        if not self.is_silent():
            await self.calls.beat(request)


class SimServer:
    """A simulated server."""

    def __init__(self, server: Server, around: Surroundings, faults: Faults) -> None:
        self.server = server
        self.faults = faults
        self.met: Counter[Fault] = Counter()
        """Number of times that each fault occurred."""
        self.around = around
        self.state: ServerState = around.store.load(server.name)
        self._life: asyncio.Task[None] | None = None
        self._is_silent = False
        """Whether its agent has vanished in the middle of an action."""
        self._leaves: Power | None = None
        """How the in-memory OS was about to end when the simulation was stopped, until an action is carried out."""
        self._system = InstalledSystem(self)

    def change(self, **changes: Any) -> None:
        """Store another state."""
        state = msgspec.structs.replace(self.state, **changes)
        if state != self.state:
            self.state = state
            self.around.store.save(self.server.name, state)

    def meets(self, fault: Fault) -> bool:
        """Return whether a fault occurs this time, by its rate."""
        struck = strikes(getattr(self.faults, fault), self.around.randomness)
        self.met[fault] += struck
        return struck

    def resume(self) -> None:
        """Continue after the simulation has been restarted."""
        if self.state.on:
            self._life = asyncio.create_task(self._live(resumed=True), name=f"server {self.server.name}")

    async def close(self) -> None:
        """End its simulation; its state stays. Cancellation point."""
        life = self._life
        if life is not None:
            await _end({life})
        if self._life is life:
            self._life = None

    async def on(self) -> None:
        """Power on. Cancellation point."""
        if self.state.on or self.meets("power_on_ignored"):
            return
        self._begin()

    def mains_return(self) -> None:
        """Power returns after it was lost, and the server starts by its settings, without a command to its BMC."""
        if not self.state.on:
            self._begin()

    async def off(self) -> None:
        """Power off, at once. Cancellation point."""
        if not self.state.on:
            return
        await self._cut()
        self.change(on=False, runs=Runs.NOTHING, agent=None, leaves=None)

    async def cycle(self) -> None:
        """Reset. Cancellation point."""
        if self.meets("power_on_ignored"):
            return
        await self._cut()
        self._begin()

    def _begin(self) -> None:
        self.change(
            on=True, runs=Runs.FIRMWARE, boots=self.state.boots + 1, tries_network=False, agent=None, leaves=None
        )
        self._life = asyncio.create_task(self._live(), name=f"server {self.server.name}")

    async def _cut(self) -> None:
        """End what runs, at once."""
        await self.close()
        await self.around.cloud.lose(self.server.uuid)

    async def _live(self, *, resumed: bool = False) -> None:
        try:
            runs = self.state.runs if resumed else await self._boot()
            while runs is not Runs.NOTHING:
                if runs is Runs.IN_MEMORY_OS:
                    runs = await self._after(await self._in_memory_os())
                elif runs is Runs.INSTALLED_SYSTEM:
                    await self._system.run(resumed=resumed)
                else:
                    runs = await self._boot()
                resumed = False
        except IronbellError as error:
            log.info("simulated server stopped", server=self.server.name, cause=error.message)
        except Exception:
            # The boundary of a server: a defect of the simulation stays with the one that met it.
            log.exception("simulated server met a defect", server=self.server.name)

    async def _after(self, power: Power) -> Runs:
        """The next state after the in-memory OS is left."""
        if power is Power.POWEROFF:
            self.change(on=False, runs=Runs.NOTHING, agent=None, leaves=None)
            return Runs.NOTHING
        if power is Power.KEXEC and actions.booted_disk(self.server, self.state) is not None:
            self.change(runs=Runs.INSTALLED_SYSTEM, agent=None, leaves=None)
            return Runs.INSTALLED_SYSTEM
        self.change(runs=Runs.FIRMWARE, boots=self.state.boots + 1, agent=None, leaves=None)
        return Runs.FIRMWARE

    async def _boot(self) -> Runs:
        """Run the firmware until something is booted."""
        around = self.around
        slow_s = self.faults.slow_boot_seconds if self.meets("slow_boot") else 0.0
        await asyncio.sleep(around.speed.firmware.draw(around.randomness) + slow_s)
        has_override = self.state.target in _NETWORK and self.state.enabled != "Disabled"
        first = has_override or self.state.tries_network
        self.change(tries_network=first)
        if self.state.enabled == _ONCE:
            self.change(enabled="Disabled", target="None")
        while True:
            has_system = actions.booted_disk(self.server, self.state) is not None
            agent = await self._netboot() if first or not has_system else None
            if agent is not None:
                await asyncio.sleep(around.speed.in_memory_os.draw(around.randomness))
                self.change(runs=Runs.IN_MEMORY_OS, tries_network=False, agent=agent)
                return Runs.IN_MEMORY_OS
            if has_system:
                self.change(runs=Runs.INSTALLED_SYSTEM, tries_network=False)
                return Runs.INSTALLED_SYSTEM
            # nothing to boot: firmware goes through its boot order again
            await asyncio.sleep(RETRY_S)

    async def _netboot(self) -> AgentStart | None:
        """Request the iPXE script; None if it leaves the boot to the disk."""
        answer = await self._boot_script()
        arguments = dict(kernel_arguments(answer.text)) if answer is not None and answer.status == 200 else {}
        authority = arguments.get("grpc_authority", "")
        if not authority:
            return None
        host, colon, port = authority.rpartition(":")
        return AgentStart(
            agent_id=arguments.get("worker_id") or self.server.mac,
            host=host if colon else authority,
            port=int(port) if colon else GRPC_PORT,
            boot_token=arguments.get(TOKEN_ARGUMENT, ""),
        )

    async def _boot_script(self) -> Answer | None:
        """The iPXE script for this server; None if the site does not answer within `NETBOOT_S`."""
        url = f"{self.around.site}/ipxe/script/{self.server.mac}/auto.ipxe"
        until_s = self.around.clock.monotonic() + NETBOOT_S
        while True:
            try:
                return await self.around.link.get(self.server, url)
            except NoAnswerError as error:
                log.debug("no boot script", server=self.server.name, cause=error.message)
            if self.around.clock.monotonic() >= until_s:
                return None
            await asyncio.sleep(RETRY_S)

    async def _in_memory_os(self) -> Power:
        """Run the agent until an action leaves the in-memory OS."""
        start = self.state.agent
        if start is None:
            return Power.REBOOT
        left: asyncio.Future[Power] = asyncio.get_running_loop().create_future()
        boot_id = f"{self.server.uuid}-{self.state.boots}"

        def switch(power: Power) -> None:
            if not left.done():
                left.set_result(power)

        def idle() -> None:
            # The site has the result of the action: otherwise it would hand the action out again.
            if self._leaves is not None:
                switch(self._leaves)

        self._is_silent, self._leaves = False, self.state.leaves
        async with self.around.link.workflows(self.server, start, boot_id) as calls:
            shipper = LogShipper(calls, start.agent_id)
            agent = Agent(
                agent_id=start.agent_id,
                calls=_Watched(calls, lambda: self._is_silent, idle),
                shipper=shipper,
                clock=self.around.clock,
                console=lambda text: log.debug("console", server=self.server.name, text=text),
                switch=switch,
                attributes=lambda: attributes(self.server),
                execute=self._execute,
            )
            tasks = {asyncio.create_task(shipper.run()), asyncio.create_task(agent.run())}
            ending: set[asyncio.Future[Any]] = {left, *tasks}
            try:
                await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    if task.done():
                        task.result()
                return await left
            finally:
                await _end(tasks)

    async def _execute(self, job: Job, listener: Listener) -> Outcome:
        """An `execute` for the agent: on the disks of this server."""
        around, environment, self._leaves = self.around, dict(job.environment or {}), None
        name = actions.name_of(job.image, environment)
        limit_s = job.limit_s if job.limit_s and job.limit_s > 0 else None
        try:
            async with asyncio.timeout(limit_s):
                if self.meets("agent_vanishes"):
                    log.info("simulated agent vanishes", server=self.server.name, action=name)
                    self._is_silent = True
                    with contextlib.suppress(TimeoutError):
                        await asyncio.Event().wait()
                await asyncio.sleep(around.speed.action(name).draw(around.randomness))
        except TimeoutError:
            self._is_silent = False
            return Outcome(Ending.TIMEOUT, f"the action did not end within its timeout of {limit_s:g} s")
        if self.meets("action_fails"):
            message = self.faults.action_message or f"{name}: the simulation made it fail"
            return Outcome(Ending.FAILED, message, exit_code=1)
        done = actions.perform(self.server, self.state, job.image, environment)
        if done.lost:
            await around.cloud.forget(self.server.uuid)
        self.change(**{field: getattr(done.state, field) for field in ("disks", "node", "wipes")})
        if done.output:
            listener.line(False, done.output)
        if done.failure:
            return Outcome(Ending.FAILED, done.failure, exit_code=1)
        after = done.after
        self.change(leaves=after.power if after is not None else None)
        if after is not None and around.speed.leaves_at_once:
            after = msgspec.structs.replace(after, delay_s=0.0)
        return Outcome(Ending.SUCCESS, done.result or "action completed", exit_code=0, after=after)
