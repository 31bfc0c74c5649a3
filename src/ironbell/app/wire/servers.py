"""The common part of the two processes for machines: `boot` (DHCP, TFTP, HTTP boot, metadata) and `workflow` (gRPC,
action logs).

Its order: read the configuration, enter the network namespace (lab), probe for foreign DHCP servers, bind all sockets
(or take over those of a predecessor that died), become an ordinary user inside the service's folder, and only then read
the first packet.
From there on a process reaches the API over the local socket with its own token, which it has read before and the other
one cannot read, and has no state but action logs; it may be killed at any moment, and the other one continues.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from ironbell.api.client import Api
from ironbell.app.processes.child import read_configuration, report, run_child
from ironbell.app.processes.kept_sockets import hand_up, inherited
from ironbell.app.processes.privileges import drop_privileges, enter_network_namespace, named_account
from ironbell.app.wire.config import API_SOCKET, SMEE, WireConfig
from ironbell.app.wire.sockets import WireSocketError, WireSockets, adopted, open_sockets
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ownfolder import OwnFolder
from ironbell.base.ports import DHCP_CLIENT_PORT, bind_problem
from ironbell.kube.transport.connection import Connection, GivenToken
from ironbell.kube.transport.http import HttpApi

_log = structlog.get_logger()


_MOST_TOKEN = 4096


class TokenError(IronbellError):
    """A process has no valid token for the API."""

    reason = "NoToken"
    retry = Retry.NEVER


class ForeignDhcpServerError(IronbellError):
    """Another DHCP server is active on the interface."""

    reason = "ForeignDhcpServer"
    retry = Retry.NEVER


class Serve(Protocol):
    """Serves machines until cancelled; calls `on_ready` once all of them are answered."""

    async def __call__(
        self, config: WireConfig, sockets: WireSockets, api: Api, *, on_ready: Callable[[], None]
    ) -> None: ...


def run_server(name: str, serve: Serve, token_file: str) -> int:
    """Run one of the processes as a child of `ironbell up`, and return the exit status."""
    return run_child(name, lambda: prepare(serve, token_file))


def prepare(serve: Serve, token_file: str) -> Callable[[], Awaitable[None]]:
    """Do everything that needs root, and return a function that serves without root until cancelled."""
    configuration = read_configuration(WireConfig)
    if configuration.network_namespace:
        enter_network_namespace(Path(configuration.network_namespace))
    sockets = bound_or_adopted(configuration)
    with OwnFolder.open(Path(configuration.folder)) as folder:
        sockets = sockets.with_logs(folder)
        token = _read_token(folder, token_file)
    become_ordinary(configuration)
    report("bound", uid=os.geteuid(), **sockets.ports())
    return lambda: _serve(configuration, sockets, serve, token)


def _read_token(folder: OwnFolder, name: str) -> str:
    """Read the token that `core` has written for this process.

    Raises:
        TokenError: there is no token.
    """
    stored = folder.read(name, limit=_MOST_TOKEN)
    if stored is None:
        raise TokenError(f"{folder.path / name} has no token; `ironbell up` writes one at its next start")
    return stored[0].decode("utf-8", "replace")


def bound_or_adopted(configuration: WireConfig) -> WireSockets:
    """The sockets: a predecessor's, if a supervisor has kept them, or else new ones.

    Raises:
        WireSocketError, SocketError, ForeignDhcpServerError: a port cannot be used, or another DHCP server is active.
    """
    sockets = adopted(inherited(), configuration)
    if sockets is None:
        gives_addresses = SMEE in configuration.serves and configuration.dhcp_mode == "reservation"
        if gives_addresses and configuration.interface and not configuration.force:
            check_for_other_servers(configuration.interface)
        sockets = open_sockets(configuration)
    hand_up(sockets.by_name())
    return sockets


def check_for_other_servers(interface: str) -> None:
    """Probe for other DHCP servers.

    Raises:
        ForeignDhcpServerError: there is another one.
        WireSocketError: another program, such as a DHCP client, uses the port.
    """
    # the workflow service's process does not need them
    from ironbell.services.dhcp.probe import probe_for_servers
    from ironbell.services.dhcp.sockets import SocketError

    try:
        addresses = asyncio.run(probe_for_servers(interface))
    except SocketError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        task = f'look for other DHCP servers on interface "{interface}"'
        remedy = "configure a static address for the interface, or skip this with --force"
        problem = bind_problem(error.__cause__, task=task, protocol="udp", port=DHCP_CLIENT_PORT, remedy=remedy)
        raise WireSocketError(problem) from error
    if addresses:
        servers = ", ".join(str(address) for address in addresses)
        raise ForeignDhcpServerError(
            f"another DHCP server answers on {interface} ({servers}); use --dhcp proxy beside it, --dhcp off, "
            "or --force to assign addresses anyway"
        )


def become_ordinary(configuration: WireConfig) -> None:
    """Enter the service's folder and drop root. Relative paths work from there even below folders of root."""
    account = named_account(configuration.user)
    os.chdir(configuration.folder)
    os.umask(0o077)
    drop_privileges(account)
    _log.info("privileges dropped", account=account.name, uid=account.uid)


async def _serve(configuration: WireConfig, sockets: WireSockets, serve: Serve, token: str) -> None:
    given = GivenToken(token)
    try:
        async with (
            HttpApi(Connection("http://localhost", token=given, socket=API_SOCKET)) as api,
            asyncio.TaskGroup() as group,
        ):
            ready = partial(report, "ready", **sockets.ports())
            group.create_task(serve(configuration, sockets, api, on_ready=ready), name="servers")
            group.create_task(_end_when_token_is_rejected(given), name="token")
    finally:
        sockets.close()


async def _end_when_token_is_rejected(token: GivenToken) -> None:
    """Wait until the API rejects the token.

    Raises:
        TokenError: the token is no longer valid; the supervisor starts this process again with another one.
    """
    await token.rejected.wait()
    raise TokenError("the Kubernetes API no longer accepts this process's token")
