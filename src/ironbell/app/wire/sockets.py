"""The sockets of the servers toward machines: all that is opened while a process is still root."""

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
"""What is served: its protocol, and what helps where the port is taken."""


_Bound: TypeAlias = Callable[[str, int, Callable[[], socket.socket]], socket.socket]
"""Binds for a service, by its name, and a port; tells what is wrong if that fails."""


class WireSocketError(IronbellError):
    """A port that machines need cannot be had."""

    reason = "PortUnusable"
    retry = Retry.NEVER


@dataclass(frozen=True)
class WireSockets:
    """Bound, not yet served; None for what this process does not serve."""

    dhcp: tuple[socket.socket, ...] = ()
    tftp: socket.socket | None = None
    http: socket.socket | None = None
    grpc: socket.socket | None = None
    workflow_http: socket.socket | None = None
    metadata: socket.socket | None = None
    logs: socket.socket | None = None
    """Where the API asks for the logs of actions; a file in the service's folder, bound anew by each process."""

    def ports(self) -> dict[str, int]:
        """Port by protocol, as really bound."""
        found = self._one_of_each() | {"dhcp": next(iter(self.dhcp), None)}
        return {name: sock.getsockname()[1] for name, sock in found.items() if sock is not None}

    def by_name(self) -> dict[str, socket.socket]:
        """All of them; `adopted` makes the same of it again."""
        found = self._one_of_each()
        dhcp = {f"dhcp{number}": sock for number, sock in enumerate(self.dhcp)}
        return dhcp | {name: sock for name, sock in found.items() if sock is not None}

    def _one_of_each(self) -> dict[str, socket.socket | None]:
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
        """The same with the socket for logs, where agents are served.

        Raises:
            WireSocketError: it cannot be bound.
        """
        if self.grpc is None:
            return self
        try:
            return replace(self, logs=folder.listen(LOGS_SOCKET))
        except OSError as error:
            problem = f"cannot listen on {folder.path / LOGS_SOCKET}: {error.strerror or error}"
            raise WireSocketError(f"{problem}; see that this folder can be written") from error


def open_sockets(config: WireConfig) -> WireSockets:
    """Bind everything.

    Raises:
        WireSocketError: a port is taken, the interface does not exist, or the privilege is missing.
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
    """Those of DHCP and TFTP."""
    # the workflow service's process has no use for them
    from ironbell.services.dhcp.settings import DhcpSettings, Mode
    from ironbell.services.dhcp.sockets import open_dhcp_socket
    from ironbell.services.tftp.sockets import open_tftp_socket

    interface, address, port = config.interface, config.address or ANY, config.tftp_port
    ports = DhcpSettings(mode=Mode.parse(config.dhcp_mode)).ports if config.dhcp_mode != "off" else ()
    dhcp = tuple(bound("DHCP", number, partial(open_dhcp_socket, interface, number)) for number in ports)
    return dhcp, bound("TFTP", port, partial(open_tftp_socket, address, port, interface=interface))


def adopted(kept: Mapping[str, socket.socket], config: WireConfig) -> WireSockets | None:
    """A predecessor's sockets, where all are there and their interface still is; the rest is closed."""
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
    """Whether a socket is still bound to the interface: one that was deleted and made again is another one."""
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
