"""The sockets of the servers for machines: everything that a process opens while it is still root."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from ironbell.app.wire.config import LOGS_SOCKET, SMEE, TINK_SERVER, TOOTLES, WireConfig
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ownfolder import OwnFolder
from ironbell.base.ports import bind_problem

BACKLOG = 1024
IFNAMSIZ = 16
ANY = "0.0.0.0"  # noqa: S104 - bound to one interface, or inside the lab's namespace

_PORTS = {
    "DHCP": ("udp", "leave DHCP to others with --dhcp off"),
    "TFTP": ("udp", "choose another port with --tftp-port"),
    "HTTP": ("tcp", "choose another port with --http-port"),
    "gRPC": ("tcp", "choose another port with --grpc-port"),
    "health of the workflow service": ("tcp", "choose another port with --workflow-http-port"),
    "metadata": ("tcp", "choose another port with --metadata-port, or leave it out"),
}
"""Protocol of each service, and the remedy if its port is in use."""


_Bound: TypeAlias = Callable[[str, int, Callable[[], socket.socket]], socket.socket]
"""Binds a port for a service, by name; raises an error with the cause and the remedy if that fails."""


class WireSocketError(IronbellError):
    """A port that machines need cannot be used."""

    reason = "PortUnusable"
    retry = Retry.NEVER


@dataclass(frozen=True)
class WireSockets:
    """Bound sockets; None for services that this process does not serve."""

    dhcp: tuple[socket.socket, ...] = ()
    tftp: socket.socket | None = None
    http: socket.socket | None = None
    grpc: socket.socket | None = None
    workflow_http: socket.socket | None = None
    metadata: socket.socket | None = None
    logs: socket.socket | None = None
    """Socket at which the API requests the logs of actions: a file in the service's folder, bound by each process."""

    def ports(self) -> dict[str, int]:
        """The bound port of each protocol."""
        by_protocol = self._single_sockets() | {"dhcp": next(iter(self.dhcp), None)}
        return {name: sock.getsockname()[1] for name, sock in by_protocol.items() if sock is not None}

    def by_name(self) -> dict[str, socket.socket]:
        """All sockets by name, from which `adopted` restores this value."""
        by_protocol = self._single_sockets()
        dhcp = {f"dhcp{number}": sock for number, sock in enumerate(self.dhcp)}
        return dhcp | {name: sock for name, sock in by_protocol.items() if sock is not None}

    def _single_sockets(self) -> dict[str, socket.socket | None]:
        return {
            "tftp": self.tftp,
            "http": self.http,
            "grpc": self.grpc,
            "workflow_http": self.workflow_http,
            "metadata": self.metadata,
        }

    def close(self) -> None:
        for sock in (*self.by_name().values(), *([self.logs] if self.logs else [])):
            sock.close()

    def with_logs(self, folder: OwnFolder) -> WireSockets:
        """Add the socket for logs, if agents are served.

        Raises:
            WireSocketError: the socket cannot be bound.
        """
        if self.grpc is None:
            return self
        try:
            return replace(self, logs=folder.listen(LOGS_SOCKET))
        except OSError as error:
            problem = f"cannot listen on {folder.path / LOGS_SOCKET}: {error.strerror or error}"
            raise WireSocketError(f"{problem}; make sure that this folder can be written") from error


def open_sockets(config: WireConfig) -> WireSockets:
    """Bind all sockets.

    Raises:
        WireSocketError: a port is in use, the interface does not exist, or the privilege is missing.
    """
    interface, address = config.interface, config.address or ANY
    where = f'interface "{interface}"' if interface else "all interfaces" if address == ANY else address

    def bound(service: str, port: int, bind: Callable[[], socket.socket]) -> socket.socket:
        protocol, remedy = _PORTS[service]
        try:
            return bind()
        except (OSError, IronbellError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError):
                raise
            task = f"serve {service} on port {port} of {where}"
            problem = bind_problem(cause, task=task, protocol=protocol, port=port, remedy=remedy)
            raise WireSocketError(problem) from error

    dhcp, tftp = _netboot_sockets(config, bound) if SMEE in config.serves else ((), None)
    second = config.metadata_port if TOOTLES in config.serves else 0
    serves_workflows, health = TINK_SERVER in config.serves, config.workflow_http_port
    return WireSockets(
        dhcp=dhcp,
        tftp=tftp,
        http=bound("HTTP", config.http_port, partial(_listening, address, config.http_port, interface))
        if config.serves_http
        else None,
        grpc=bound("gRPC", config.grpc_port, partial(_listening, address, config.grpc_port, interface))
        if serves_workflows
        else None,
        workflow_http=bound("health of the workflow service", health, partial(_listening, address, health, interface))
        if serves_workflows and health is not None
        else None,
        metadata=bound("metadata", second, partial(_listening, address, second, interface)) if second else None,
    )


def _netboot_sockets(config: WireConfig, bound: _Bound) -> tuple[tuple[socket.socket, ...], socket.socket]:
    """The sockets of DHCP and TFTP."""
    # the workflow service's process does not need them
    from ironbell.services.dhcp.settings import DhcpSettings, Mode
    from ironbell.services.dhcp.sockets import open_dhcp_socket
    from ironbell.services.tftp.sockets import open_tftp_socket

    interface, address, port = config.interface, config.address or ANY, config.tftp_port
    ports = DhcpSettings(mode=Mode.parse(config.dhcp_mode)).ports if config.dhcp_mode != "off" else ()
    dhcp = tuple(bound("DHCP", number, partial(open_dhcp_socket, interface, number)) for number in ports)
    return dhcp, bound("TFTP", port, partial(open_tftp_socket, address, port, interface=interface))


def adopted(kept: Mapping[str, socket.socket], config: WireConfig) -> WireSockets | None:
    """A predecessor's sockets, if all exist and their interface does; the rest is closed."""
    dhcp = tuple(kept[name] for name in sorted(kept) if name.startswith("dhcp"))
    needed = {
        "tftp": SMEE in config.serves,
        "http": config.serves_http,
        "grpc": TINK_SERVER in config.serves,
        "workflow_http": TINK_SERVER in config.serves and config.workflow_http_port is not None,
        "metadata": TOOTLES in config.serves and bool(config.metadata_port),
    }
    names = {name for name, is_needed in needed.items() if is_needed}
    if names <= set(kept) and all(_is_on(sock, config.interface) for sock in kept.values()):
        return WireSockets(dhcp=dhcp, **{name: kept[name] for name in names})
    for sock in kept.values():
        sock.close()
    return None


def _is_on(sock: socket.socket, interface: str) -> bool:
    """Return whether a socket is still bound to the interface: one that was deleted and created again is another
    one."""
    try:
        bound = sock.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, IFNAMSIZ)
    except OSError:
        return False
    return bound.rstrip(b"\0") == interface.encode()


def _listening(address: str, port: int, interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if interface:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
