"""How the servers toward machines are told what to serve: one value, sent over the standard input of each process."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ironbell.base.ports import GRPC_PORT, HTTP_PORT, TFTP_PORT
from ironbell.contract.servers.boot_token import Identity
from ironbell.contract.servers.netboot import CONSOLES, NetbootSettings

API_SOCKET = "api.sock"
TOKEN_FILE = "token"  # noqa: S105 - a file name
WORKFLOW_TOKEN_FILE = "workflow-token"  # noqa: S105 - a file name
LOGS_SOCKET = "logs.sock"
LOGS_FOLDER = "logs"
WIRE_FOLDER = "wire"
ARTEFACTS_FOLDER = "artefacts"
IPXE_FOLDER = "ipxe"

SMEE, TOOTLES, TINK_SERVER = "smee", "tootles", "tink-server"
"""The servers toward machines by their names in the field: netboot (DHCP, TFTP, scripts and artefacts over HTTP),
metadata, and the workflow service that agents speak to."""
BOOT_SERVERS = (SMEE, TOOTLES)
WORKFLOW_SERVERS = (TINK_SERVER,)
"""What each of the two processes of `wire` serves: who floods the one does not reach the other."""
SERVERS = (*BOOT_SERVERS, *WORKFLOW_SERVERS)
BOOT_PROCESS, WORKFLOW_PROCESS = "boot", "workflow"
"""The two processes by name."""


class WireConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to serve machines. Everything that a server opens later lies below `folder`."""

    folder: str
    serves: tuple[str, ...] = SERVERS
    """Which of the servers run in this process: the boot services, which share a port for HTTP, or the workflow
    service."""
    namespace: str = ""
    """Serve the Hardware and Workflows of this namespace only; empty: all."""
    interface: str = ""
    """Serve this interface only; empty: all (in the lab, the lab's namespace holds nothing else)."""
    address: str = ""
    """Listen on this address only; empty: on all of the interface's. Not for DHCP."""
    network_namespace: str = ""
    advertise: str = ""
    """Our address for machines; empty: the one that each subnet reaches."""
    dhcp_mode: str = "reservation"
    """`reservation`, `proxy`, `auto-proxy` or `off`."""
    force: bool = False
    """Serve reservations even where another DHCP server answers."""
    http_port: int = HTTP_PORT
    metadata_port: int = 0
    """A second port for the metadata alone, such as 50061, where older Tinkerbell has it; 0: none."""
    metadata_by_instance_id: bool = False
    """Whether metadata is served by instance id as well, to whoever knows one."""
    tftp_port: int = TFTP_PORT
    grpc_port: int = GRPC_PORT
    workflow_http_port: int | None = None
    """Where the workflow service says over HTTP how it is; None: nowhere."""
    grpc_authority: str = ""
    """host:port of the workflow service for machines; empty: our address and `grpc_port`."""
    artefacts: tuple[str, ...] = ()
    """Names of published folders; each is also a URL folder."""
    osie_url: str = ""
    consoles: tuple[str, ...] = CONSOLES
    extra_kernel_arguments: tuple[str, ...] = ()
    syslog_host: str = ""
    identity: Identity = Identity.OWN
    """How machines are known."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of peers that speak for machines."""
    user: str = ""
    """Account to run as, by name or number; empty: `ironbell` if there is one, else a number of its own."""

    def serving(self, servers: tuple[str, ...]) -> WireConfig:
        """The same for a process of these servers only."""
        return msgspec.structs.replace(self, serves=tuple(name for name in self.serves if name in servers))

    @property
    def serves_http(self) -> bool:
        """Whether machines are answered over HTTP."""
        return SMEE in self.serves or TOOTLES in self.serves

    def with_ports(self, bound: Mapping[str, int]) -> WireConfig:
        """The same with the ports that are bound: machines are told them, and a port of 0 stands for any free one."""
        known = {f"{name}_port": bound[name] for name in ("http", "tftp", "grpc") if name in bound}
        return msgspec.structs.replace(self, **known)

    def netboot_settings(self) -> NetbootSettings:
        """The site's part of the netboot policy."""
        return NetbootSettings(
            osie_url=self.osie_url or f"http://{{address}}:{self.http_port}/osie",
            grpc_authority=self.grpc_authority or f"{{address}}:{self.grpc_port}",
            syslog_host=self.syslog_host,
            consoles=self.consoles,
            extra_kernel_arguments=self.extra_kernel_arguments,
        )
