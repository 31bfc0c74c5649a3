"""A fleet in a running simulation: its folder, its objects in the API, its BMCs on the loopback network."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from ironbell.api.bmc.machine import MACHINE
from ironbell.api.client import AlreadyExists, Api, ApiError, PatchType, WriteOptions
from ironbell.api.core.secret import SECRET
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness
from ironbell.kube.decision import Key
from ironbell.lab.certificates import create_certificates, write_private
from ironbell.lab.files import LabFolder
from ironbell.lab.fleet.catalogue import FleetError, Server, hardware
from ironbell.lab.fleet.faults import FaultsFile, FaultsFileError
from ironbell.lab.fleet.link import SocketLink
from ironbell.lab.fleet.redfish import USER, FleetBmcs
from ironbell.lab.fleet.server import SimServer, Surroundings
from ironbell.lab.fleet.state import FileStore
from ironbell.lab.manifests import bmc_machine, secret
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import Endpoint
from ironbell.lab.sim.timing import Speed

NAMESPACE: Final = "default"
_OPTIONS: Final = WriteOptions(field_manager="ironbell-simulation", force=True)
_RETRY_S: Final = 1.0
_AT_ONCE: Final = 16

log = structlog.get_logger()


@asynccontextmanager
async def running(
    servers: Sequence[Server],
    *,
    api: Api,
    cloud: Cloud,
    folder: Path,
    site: str,
    speed: Speed,
    faults: FaultsFile,
    clock: Clock,
    randomness: Randomness,
) -> AsyncIterator[list[SimServer]]:
    """Servers that are in the API and can be powered on, for as long as the block runs.

    Raises:
        FleetError: an address of the loopback network is not available.
        FaultsFileError: the file of faults names servers that do not exist.
    """
    unknown = set(faults.servers) - {server.name for server in servers}
    if unknown:
        raise FaultsFileError(f"servers.{min(unknown)} does not exist; the servers are sim-0001 to {servers[-1].name}")
    files = LabFolder(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    await asyncio.to_thread(create_certificates, files)
    store = FileStore(folder / "servers")
    around = Surroundings(SocketLink(), site, cloud, store, speed, clock, randomness, can_listen)
    simulated = [SimServer(server, around, faults.of(server.name)) for server in servers]
    password = _kept(folder / "bmc-password", lambda: secrets.token_urlsafe(12))
    async with AsyncExitStack() as stack:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(files.certificate, files.key)
        port = int(_kept(folder / "bmc-port", lambda: str(_free_port(servers[0].bmc_address))))
        try:
            stack.push_async_callback(await FleetBmcs(simulated, password).listen(port, tls))
        except OSError as error:
            raise FleetError(f"the BMCs cannot listen on port {port} of 127.78.0.0/16: {error.strerror}") from error
        await register(api, servers, port, password)
        for server in simulated:
            stack.push_async_callback(server.close)
            server.resume()
        yield simulated


async def register(api: Api, servers: Sequence[Server], port: int, password: str) -> None:
    """Create the missing objects of servers; existing ones are left to their users. Cancellation point."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def create(server: Server) -> None:
        async with gate:
            await _write(api, SECRET, secret(server.name, NAMESPACE, USER, password))
            machine = bmc_machine(server.name, NAMESPACE, server.bmc_address, port)
            await _write(api, MACHINE, machine, replaces=True)
            await _write(api, HARDWARE, hardware(server, NAMESPACE))

    async with asyncio.TaskGroup() as group:
        for server in servers:
            group.create_task(create(server))


def can_listen(host: str) -> bool:
    """Return whether an address is this machine's."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.bind((host, 0))
    except OSError:
        return False
    return True


def endpoint(cluster: Key) -> Endpoint | None:
    """Address of the API of a cluster of simulated servers, from its key; None for another cluster."""
    namespace, text = cluster
    host, colon, port = text.rpartition(":")
    return Endpoint(host, int(port)) if not namespace and colon else None


async def _write(api: Api, kind: Kind[Any], document: Mapping[str, Any], *, replaces: bool = False) -> None:
    """Create an object, or replace an existing one; retried until the API accepts it, as it may still be starting."""
    body, name = msgspec.json.encode(document), document["metadata"]["name"]
    while True:
        try:
            if replaces:
                await api.patch(kind.collection, NAMESPACE, name, body, patch_type=PatchType.APPLY, options=_OPTIONS)
            else:
                await api.create(kind.collection, NAMESPACE, body, options=_OPTIONS)
            return
        except AlreadyExists:
            return
        except ApiError as error:
            log.info("simulated servers are not registered yet", kind=kind.kind, cause=error.message)
        await asyncio.sleep(_RETRY_S)


def _kept(path: Path, create: Callable[[], str]) -> str:
    """The content of a file, which is created the first time."""
    try:
        return path.read_text()
    except FileNotFoundError:
        text = create()
        write_private(path, text.encode())
        return text


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])
