"""The boot services: DHCP, TFTP, HTTP boot and metadata, from one directory of Hardware.

All paths are relative to the service's folder, which is the working directory.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from aiohttp import web

from ironbell.api.client import Api
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.interface import Interface
from ironbell.app.wire.boot_recorder import BootRecorder
from ironbell.app.wire.config import ARTEFACTS_FOLDER, IPXE_FOLDER, SMEE, TOOTLES, WireConfig
from ironbell.app.wire.http import forwarding, health_routes, healthcheck_route, running
from ironbell.app.wire.sockets import WireSockets
from ironbell.base.clock import Clock, SteadyClock
from ironbell.base.randomness import SystemRandomness
from ironbell.codec.dhcp.packet import ZERO
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.identity import networks
from ironbell.contract.servers.netboot import NetbootPlan, NetbootSettings, netboot_plan
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.manager.events import EventRecorder
from ironbell.services.boot.binaries import DISTRIBUTION_FOLDER, IpxeBinaries
from ironbell.services.boot.http import BootHttp
from ironbell.services.boot.tokens import BootTokens
from ironbell.services.dhcp.answers import Reply
from ironbell.services.dhcp.server import DhcpServer
from ironbell.services.dhcp.settings import DhcpSettings, Mode
from ironbell.services.metadata.http import MetadataHttp
from ironbell.services.tftp.server import TftpServer
from ironbell.services.workflow.index import WorkflowTable

MAX_RELAYS: Final = 256


@dataclass
class Relays:
    """Addresses of DHCP relays since the start: many machines behind one may request boot files as one address.

    An address counts as a relay once a known machine was answered through it. That can be faked; it only allows more
    transfers at a time.
    """

    _addresses: dict[str, None] = field(default_factory=dict)

    def __contains__(self, address: object) -> bool:
        return address in self._addresses

    def record(self, reply: Reply) -> None:
        """Record the relay of a response to a machine."""
        if reply.hardware and reply.packet.giaddr != ZERO and len(self._addresses) < MAX_RELAYS:
            self._addresses[str(reply.packet.giaddr)] = None


@dataclass(frozen=True)
class _Wire:
    """Objects that the servers share."""

    config: WireConfig
    settings: NetbootSettings
    directory: HardwareDirectory
    recorder: BootRecorder
    binaries: IpxeBinaries
    clock: Clock
    tokens: BootTokens | None
    workflows: WorkflowTable
    relays: Relays = field(default_factory=Relays)

    def plan(self, hardware: Hardware, interface: Interface, address: str) -> NetbootPlan:
        return netboot_plan(hardware, interface, self.settings, address=address)

    def on_dhcp_reply(self, reply: Reply) -> None:
        """Record the response to a machine."""
        self.relays.record(reply)
        self.recorder.on_dhcp_reply(reply)

    async def fetch(self, path: str, client: str) -> bytes:
        """Content for TFTP: iPXE binaries.

        Raises:
            NotServedError: there is no binary of that name.
        """
        body = await asyncio.to_thread(self.binaries.read, path)
        self.recorder.on_tftp(client, path, len(body))
        return body


async def serve_boot(config: WireConfig, sockets: WireSockets, api: Api, *, on_ready: Callable[[], None]) -> None:
    """Serve until cancelled. Machines are answered once all Hardware is known; until then none is."""
    clock, config = SteadyClock(), config.with_ports(sockets.ports())
    async with asyncio.TaskGroup() as group:
        directory = HardwareDirectory()
        events = EventRecorder(api, "ironbell-wire", clock=clock, randomness=SystemRandomness())
        recorder = BootRecorder(directory, events, Client(api), clock)
        hardware = Informer(api, HARDWARE, namespace=config.namespace)
        hardware.add_handler(directory.follow)
        for step in (hardware.run(), events.run(), recorder.run()):
            group.create_task(step)
        table = WorkflowTable()
        if TOOTLES in config.serves:
            workflows = Informer(api, WORKFLOW, namespace=config.namespace)
            workflows.add_handler(table.follow)
            group.create_task(workflows.run())
            await workflows.wait_synced()
        await hardware.wait_synced()
        folders = (Path(IPXE_FOLDER), DISTRIBUTION_FOLDER)
        tokens = None
        if config.identity is not Identity.COMPAT:
            gives_addresses = config.dhcp_mode == Mode.RESERVATION.value
            tokens = BootTokens(api, clock, SystemRandomness(), config.identity is Identity.OWN, gives_addresses)
        wire = _Wire(
            config, config.netboot_settings(), directory, recorder, IpxeBinaries(folders), clock, tokens, table
        )
        for sock in sockets.dhcp:
            group.create_task(_dhcp(wire, sock).run(), name="dhcp")
        if sockets.tftp is not None:
            group.create_task(TftpServer(sockets.tftp, fetch=wire.fetch, relays=wire.relays).run(), name="tftp")
        if sockets.http is None:
            on_ready()
        else:
            await _serve_http(wire, sockets.http, sockets.metadata, on_ready)


def _dhcp(wire: _Wire, sock: socket.socket) -> DhcpServer:
    config = wire.config
    settings = DhcpSettings(
        mode=Mode.parse(config.dhcp_mode),
        advertise=IPv4Address(config.advertise) if config.advertise else None,
        tftp_port=config.tftp_port,
        binary_url=f"http://{{address}}:{config.http_port}/ipxe/binary",
        script_url=f"http://{{address}}:{config.http_port}/ipxe/script/{{mac}}/auto.ipxe",
        log_server=config.syslog_host,
        is_served=wire.binaries.has,
    )
    return DhcpServer(
        sock,
        interface=config.interface,
        settings=settings,
        directory=wire.directory,
        plan=wire.plan,
        clock=wire.clock,
        on_problem=wire.recorder.on_dhcp_problem,
        on_reply=wire.on_dhcp_reply,
    )


async def _serve_http(
    wire: _Wire, sock: socket.socket, metadata_sock: socket.socket | None, on_ready: Callable[[], None]
) -> None:
    forwarded = forwarding(networks(wire.config.trusted_proxies))
    application, alone = web.Application(middlewares=[forwarded]), web.Application(middlewares=[forwarded])
    healthcheck = healthcheck_route(wire.clock)
    if SMEE in wire.config.serves:
        application.add_routes(_boot(wire).routes())
    if TOOTLES in wire.config.serves:
        application.add_routes(_metadata(wire).routes())
        alone.add_routes(_metadata(wire).routes())
    application.add_routes(health_routes())
    async with AsyncExitStack() as stack:
        for app, port in ((application, sock), (alone, metadata_sock)):
            app.add_routes([healthcheck])
            if port is not None:
                await stack.enter_async_context(running(app, port))
        on_ready()
        await asyncio.Event().wait()


def _metadata(wire: _Wire) -> MetadataHttp:
    config = wire.config
    return MetadataHttp(
        wire.directory,
        wire.workflows.get,
        wire.recorder,
        config.identity,
        by_instance_id=config.metadata_by_instance_id,
    )


def _boot(wire: _Wire) -> BootHttp:
    artefacts = {name: Path(ARTEFACTS_FOLDER) / name for name in wire.config.artefacts}
    return BootHttp(
        wire.directory,
        lambda: wire.settings,
        wire.binaries,
        artefacts,
        advertise=wire.config.advertise,
        observer=wire.recorder,
        tokens=wire.tokens,
        serve_unknown=Mode.parse(wire.config.dhcp_mode) is Mode.AUTO_PROXY if wire.config.dhcp_mode != "off" else False,
    )
