"""Split the servers for machines of `ironbell run` into processes, and become one of them.

The command line has the controllers' code in memory; servers need none of it. So a process that only serves machines,
or only supervises such processes, executes itself again as that, with its configuration in an unnamed file as standard
input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from ironbell.app.processes.health import read_address
from ironbell.app.run.supervisor import MODULE as SUPERVISOR_MODULE
from ironbell.app.run.supervisor import SupervisorConfig
from ironbell.app.wire.config import BOOT_PROCESS, BOOT_SERVERS, WORKFLOW_PROCESS, WORKFLOW_SERVERS, ServersConfig
from ironbell.base.ports import free_ports

_SERVERS_MODULE = "ironbell.app.run.wire"
_PROCESSES = {BOOT_PROCESS: BOOT_SERVERS, WORKFLOW_PROCESS: WORKFLOW_SERVERS}


def split(config: ServersConfig) -> list[ServersConfig]:
    """One configuration for each process. With several, the health address is that of the first, and each of the others
    has the next port.

    Raises:
        AddressError: there is no next port.
    """
    parts = {name: config.wire.serving(servers) for name, servers in _PROCESSES.items()}
    parts = {name: wire for name, wire in parts.items() if wire.serves}
    if len(parts) == 1:
        return [config]
    if not config.wire.grpc_port:
        # the process that reports the port to machines is not the one that binds it
        port = free_ports(config.wire.address, 1)[0]
        parts = {name: msgspec.structs.replace(wire, grpc_port=port) for name, wire in parts.items()}
    return [
        msgspec.structs.replace(
            config, name=name, wire=wire, health_address=after(config.health_address, number), is_supervised=True
        )
        for number, (name, wire) in enumerate(parts.items())
    ]


def after(address: str, number: int) -> str:
    """The address with a port that is `number` higher; unchanged if it is empty or any port will do.

    Raises:
        AddressError: there is no such port.
    """
    if not address:
        return ""
    host, port = read_address(address)
    if not port or not number:
        return address
    following = f"[{host}]:{port + number}" if ":" in host else f"{host}:{port + number}"
    read_address(following)
    return following


def become_servers(config: ServersConfig) -> NoReturn:
    """Continue as the process that serves."""
    _become(_SERVERS_MODULE, config)


def become_supervisor(servers: Sequence[ServersConfig], *, controllers: tuple[str, ...], grace_s: float) -> NoReturn:
    """Continue as the supervisor of these processes, and of one of `ironbell` with these arguments if there are any."""
    configurations = {server.name: msgspec.Raw(msgspec.json.encode(server)) for server in servers}
    _become(SUPERVISOR_MODULE, SupervisorConfig(servers=configurations, controllers=controllers, grace_s=grace_s))


def _become(module: str, config: msgspec.Struct) -> NoReturn:
    file = os.memfd_create("configuration")
    os.write(file, msgspec.json.encode(config) + b"\n")
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, sys.stdin.fileno() if sys.stdin is not None else 0)
    os.execv(sys.executable, [sys.executable, "-m", module])  # noqa: S606 - there is no text to interpret
