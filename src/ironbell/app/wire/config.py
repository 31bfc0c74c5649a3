"""The configuration of the servers for machines: one value, sent over the standard input of each process."""

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
"""The servers for machines by their upstream names: netboot (DHCP, TFTP, scripts and artefacts over HTTP),
metadata, and the workflow service that agents speak to."""
BOOT_SERVERS = (SMEE, TOOTLES)
WORKFLOW_SERVERS = (TINK_SERVER,)
"""Servers of each of the two processes of `wire`: a flood of the one does not reach the other."""
SERVERS = (*BOOT_SERVERS, *WORKFLOW_SERVERS)
BOOT_PROCESS, WORKFLOW_PROCESS = "boot", "workflow"
"""The two processes by name."""


class WireConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the servers for machines. All files that a server opens later are below `folder`."""

    folder: str
    serves: tuple[str, ...] = SERVERS
    """The servers that run in this process: the boot services, which share a port for HTTP, or the workflow service."""
    namespace: str = ""
    """The only namespace whose Hardware and Workflows are served; empty for all."""
    interface: str = ""
    """The only interface to serve; empty for all (in the lab, the lab's namespace has no others)."""
    address: str = ""
    """The only address to listen on, except for DHCP; empty for all of the interface."""
    network_namespace: str = ""
    advertise: str = ""
    """Address of this host for machines; empty for the one in each subnet."""
    dhcp_mode: str = "reservation"
    """`reservation`, `proxy`, `auto-proxy` or `off`."""
    force: bool = False
    """Whether to serve reservations even if another DHCP server answers."""
    http_port: int = HTTP_PORT
    metadata_port: int = 0
    """Additional port for the metadata alone, such as 50061, which older Tinkerbell uses; 0 for none."""
    metadata_by_instance_id: bool = False
    """Whether metadata is also served by instance id, to clients that know one."""
    tftp_port: int = TFTP_PORT
    grpc_port: int = GRPC_PORT
    workflow_http_port: int | None = None
    """Port of the health of the workflow service over HTTP; None for none."""
    grpc_authority: str = ""
    """host:port of the workflow service for machines; empty for our address and `grpc_port`."""
    artefacts: tuple[str, ...] = ()
    """Names of published folders; each is also a URL folder."""
    osie_url: str = ""
    consoles: tuple[str, ...] = CONSOLES
    extra_kernel_arguments: tuple[str, ...] = ()
    syslog_host: str = ""
    identity: Identity = Identity.OWN
    """How machines are identified."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of peers that send requests on behalf of machines."""
    user: str = ""
    """Account to run as, by name or number; empty for `ironbell` if it exists, or else a number."""

    def serving(self, servers: tuple[str, ...]) -> WireConfig:
        """The configuration of a process with these servers only."""
        return msgspec.structs.replace(self, serves=tuple(name for name in self.serves if name in servers))

    @property
    def serves_http(self) -> bool:
        """Return whether machines are answered over HTTP."""
        return SMEE in self.serves or TOOTLES in self.serves

    def with_ports(self, bound: Mapping[str, int]) -> WireConfig:
        """The configuration with the bound ports, which machines get; a port of 0 stands for any free one."""
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


class ServersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of one process, and their API."""

    name: str
    wire: WireConfig
    kubeconfig: str = ""
    context: str = ""
    health_address: str = ""
    grace_s: float = 20.0
    published: dict[str, str] = {}
    """Folders of artefacts by name."""
    ipxe_dir: str = ""
    node_images: str = ""
    is_supervised: bool = False
    """Whether a supervisor reads reports, keeps sockets, and stops this process when it stops."""
