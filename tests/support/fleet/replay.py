"""Simulated servers on virtual time: the real controllers of Cluster API, Tinkerbell and its provider, the handlers of
the servers toward machines, and BMC sessions, all in one thread and by direct call."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from ironbell.agent.rpc import BOOT_ID_METADATA, HEARTBEAT_METADATA, CallError
from ironbell.agent.settings import HEARTBEAT_S
from ironbell.api import bmc, capt, tinkerbell
from ironbell.api.bmc.connection import Connection
from ironbell.api.bmc.machine import PowerState
from ironbell.api.client import Api
from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.app.wire.boot_recorder import BootRecorder
from ironbell.base.clock import Clock
from ironbell.base.randomness import SeededRandomness
from ironbell.bmc.driver import UnreachableError
from ironbell.bmc.redfish.inventory import collect
from ironbell.codec.proto import heartbeat_pb2, log_pb2, workflow_pb2
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootSettings
from ironbell.contract.servers.node_images import ImageSource
from ironbell.controllers.capt import controllers as capt_controllers
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.rufio.operation import Operation, SetBootDevice, SetPower
from ironbell.controllers.rufio.secret import Credentials
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.manager.controller import Controller
from ironbell.kube.manager.events import EventRecorder
from ironbell.lab.fleet import inventory
from ironbell.lab.fleet.catalogue import Server, fleet, hardware
from ironbell.lab.fleet.faults import Faults
from ironbell.lab.fleet.link import Answer, NoAnswerError
from ironbell.lab.fleet.server import SimServer, Surroundings
from ironbell.lab.fleet.state import AgentStart, MemoryStore, ServerState
from ironbell.lab.manifests import bmc_machine, secret
from ironbell.lab.redfish_answers import SYSTEM
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.replay import Surroundings as Around
from ironbell.lab.sim.timing import INSTANT, Speed
from ironbell.services.boot.binaries import IpxeBinaries
from ironbell.services.boot.http import BootHttp
from ironbell.services.metadata.http import MetadataHttp
from ironbell.services.workflow.annotator import Annotator
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.liveness import Liveness
from ironbell.services.workflow.service import WorkflowService
from ironbell.services.workflow.writer import WorkflowWriter
from support.capi import site as capisite
from support.servers.rendering import InProcess

SITE = "http://127.0.0.1:7080"
NAMESPACE = "default"
FINISH_S = 10.0


class Wire:
    """The servers toward machines, over an API by direct call."""

    def __init__(self, api: Api, clock: Clock, seed: int) -> None:
        self._directory = HardwareDirectory()
        self._table = WorkflowTable()
        self._events = EventRecorder(api, "ironbell-wire", clock=clock, randomness=SeededRandomness(seed))
        self._recorder = BootRecorder(self._directory, self._events, Client(api), clock)
        self._hardware, self._workflows = Informer(api, HARDWARE), Informer(api, WORKFLOW)
        self._hardware.add_handler(self._directory.follow)
        self._workflows.add_handler(self._table.follow)
        settings = NetbootSettings(osie_url=f"{SITE}/osie", grpc_authority="{address}:42113")
        boot = BootHttp(
            self._directory, lambda: settings, IpxeBinaries(()), advertise="127.0.0.1", observer=self._recorder
        )
        self.http = web.Application()
        metadata = MetadataHttp(self._directory, self._table.get, self._recorder)
        self.http.add_routes([*boot.routes(), *metadata.routes()])
        writer = WorkflowWriter(api, self._table)
        self.liveness = Liveness(writer, Annotator(writer, clock), clock)
        self.workflow = WorkflowService(
            writer, clock, directory=self._directory, finish_s=FINISH_S, liveness=self.liveness
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for step in (self._hardware, self._workflows, self._events, self._recorder, self.liveness):
                group.create_task(step.run())


class _Transport(asyncio.Transport):
    def __init__(self, peer: str) -> None:
        super().__init__({"peername": (peer, 1), "sockname": ("127.0.0.1", 7080)})

    def is_closing(self) -> bool:
        return False


class _RawStream:
    def __init__(self, data: bytes) -> None:
        self._data = struct.pack(">?I", False, len(data)) + data

    async def recv_data(self, size: int) -> bytes:
        found, self._data = self._data[:size], self._data[size:]
        return found


class _Stream:
    """As much of grpclib's stream as the service uses."""

    def __init__(self, message: Any, metadata: dict[str, str]) -> None:
        self._stream = _RawStream(message.SerializeToString())
        self.metadata = metadata
        self.deadline = None
        self.peer = None
        self.answer: Any = None

    async def send_message(self, message: Any) -> None:
        self.answer = message


@dataclass
class _Calls:
    """An agent's calls, to the service's own methods."""

    wire: Wire
    boot_id: str

    async def get_action(self, request: workflow_pb2.ActionRequest) -> workflow_pb2.ActionResponse:
        answer: workflow_pb2.ActionResponse = await self._call(self.wire.workflow.GetAction, request)
        return answer

    async def report(self, request: workflow_pb2.ActionStatusRequest) -> None:
        await self._call(self.wire.workflow.ReportActionStatus, request)

    async def append(self, request: log_pb2.AppendRequest) -> log_pb2.AppendResponse:
        raise CallError(Status.UNIMPLEMENTED, "logs are not kept here")

    async def beat(self, request: heartbeat_pb2.BeatRequest) -> None:
        await self._call(self.wire.liveness.Beat, request)

    async def report_machine(self, request: log_pb2.MachineReport) -> None:
        return None

    async def _call(self, method: Any, request: Any) -> Any:
        stream = _Stream(request, {BOOT_ID_METADATA: self.boot_id, HEARTBEAT_METADATA: f"{HEARTBEAT_S:g}"})
        try:
            await method(stream)
        except GRPCError as error:
            raise CallError(error.status, error.message or "") from error
        return stream.answer


class MemoryLink:
    """A `Link` to a `Wire`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def get(self, server: Server, url: str) -> Answer:
        return await self._ask(server, "GET", url, b"")

    async def post(self, server: Server, url: str, document: Any) -> Answer:
        return await self._ask(server, "POST", url, msgspec.json.encode(document))

    @asynccontextmanager
    async def workflows(self, server: Server, start: AgentStart, boot_id: str) -> AsyncIterator[_Calls]:
        yield _Calls(self._wire, boot_id)

    async def _ask(self, server: Server, method: str, url: str, body: bytes) -> Answer:
        if not url.startswith(SITE):
            raise NoAnswerError(f"{url} is nobody")
        loop = asyncio.get_running_loop()
        payload = StreamReader(BaseProtocol(loop), 1 << 16, loop=loop)
        payload.feed_data(body)
        payload.feed_eof()
        request = make_mocked_request(
            method, url.removeprefix(SITE), app=self._wire.http, transport=_Transport(server.address), payload=payload
        )
        try:
            answer = await self._wire.http._handle(request)
        except web.HTTPException as error:
            return Answer(error.status, error.text or "")
        assert isinstance(answer, web.Response)
        return Answer(answer.status, answer.text or "")


@dataclass
class _BmcSession:
    """A `Session` with the BMC of a server."""

    server: SimServer

    async def power_state(self) -> PowerState:
        self._reach()
        return PowerState.ON if self.server.state.on else PowerState.OFF

    async def inventory(self) -> Inventory:
        self._reach()
        documents = inventory.documents(self.server.server)
        documents[SYSTEM] = inventory.system(self.server.server)

        async def get(path: str) -> dict[str, Any]:
            return documents[path]

        return await collect(get, SYSTEM)

    async def operate(self, operation: Operation) -> None:
        self._reach()
        server = self.server
        match operation:
            case SetBootDevice(device=device):
                target = {"pxe": "Pxe", "disk": "Hdd", "none": "None"}.get(device, device)
                server.change(target=target, enabled="Once")
            case SetPower(action=action):
                do = {"on": server.on, "off": server.off, "soft": server.off}.get(str(action), server.cycle)
                await do()

    async def close(self) -> None:
        return None

    def _reach(self) -> None:
        if self.server.meets("bmc_unreachable"):
            raise UnreachableError("the BMC does not answer, on purpose")


Watcher = Callable[[str, ServerState, ServerState], None]
"""Told of a server's name and what was and is, whenever that changes."""


class _Told(MemoryStore):
    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers
        self._known: dict[str, ServerState] = {}

    def save(self, name: str, state: ServerState) -> None:
        before = self._known.get(name, ServerState())
        self._known[name] = state
        for watcher in self._watchers:
            watcher(name, before, state)


@dataclass
class FleetSite:
    """A replayed site with servers."""

    seed: int
    count: int
    faults: Faults = field(default_factory=Faults)
    speed: Speed = INSTANT
    servers: dict[str, SimServer] = field(default_factory=dict)
    """By name."""
    watchers: list[Watcher] = field(default_factory=list)
    _by_bmc: dict[str, SimServer] = field(default_factory=dict)

    def controllers(self, around: Around) -> list[Controller]:
        """Everything that `core` runs, with BMCs by direct call."""
        engine = InProcess()
        access = BmcAccess(around.api, self._connect)
        return [
            *capisite.controllers(around),
            *tink.controllers(engine, engine.parse, _nobody_else),
            *rufio.controllers(access, around.clock, _nobody_else),
            *capt_controllers.controllers(
                around.api,
                SITE,
                _nobody_else,
                images=ImageSource(url=f"{SITE}/images"),
                workloads=around.workloads,
                connect=around.links,
            ),
        ]

    async def _connect(self, connection: Connection, _credentials: Credentials) -> _BmcSession:
        session = _BmcSession(self._by_bmc[connection.host])
        session._reach()
        return session

    async def begin(self, site: ReplaySite, wire: Wire) -> None:
        """Make the servers, and their objects."""
        around = Surroundings(
            MemoryLink(wire), SITE, site.cloud, _Told(self.watchers), self.speed, site.clock,
            SeededRandomness(self.seed + 7), cluster_at=_cluster_at,
        )  # fmt: skip
        described = fleet(self.count)
        self.servers = {one.name: SimServer(one, around, self.faults) for one in described}
        self._by_bmc = {one.server.bmc_address: one for one in self.servers.values()}
        for one in described:
            documents = (
                secret(one.name, NAMESPACE, "admin", "x"),
                bmc_machine(one.name, NAMESPACE, one.bmc_address, 443),
                hardware(one, NAMESPACE),
            )
            await site.apply(documents)

    def calm(self) -> None:
        """Nothing goes wrong any more."""
        for server in self.servers.values():
            server.faults = Faults()

    async def close(self) -> None:
        for server in self.servers.values():
            await server.close()


@asynccontextmanager
async def fleet_site(
    seed: int, count: int, *, faults: Faults | None = None, speed: Speed = INSTANT, **more: Any
) -> AsyncIterator[tuple[ReplaySite, FleetSite]]:
    """A site on virtual time with so many servers."""
    made = FleetSite(seed, count, faults or Faults(), speed)
    kinds = [crd_document(kind) for group in (tinkerbell, bmc, capt) for kind in group.KINDS]
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(capisite.site(seed, build=made.controllers, more_kinds=kinds, **more))
        wire = Wire(site.client.api, site.clock, seed)
        running = asyncio.create_task(wire.run(), name="wire")
        stack.callback(running.cancel)
        stack.push_async_callback(made.close)
        await made.begin(site, wire)
        yield site, made


def endpoint_host(cluster: str) -> str:
    """The host of a cluster's API, as replay calls it."""
    return f"{cluster}.{NAMESPACE}.sim"


def _cluster_at(endpoint: Endpoint) -> Key:
    name, namespace, _ = endpoint.host.split(".")
    return namespace, name


def _nobody_else(_controller: str) -> None:
    return None


__all__: Sequence[str] = ("FleetSite", "endpoint_host", "fleet_site")
