"""The lab's network: a namespace of its own with a bridge and a tap for each machine. Nothing leaves it, except to this
host where the lab is configured to be reachable.

The namespace's name follows from the lab's folder, so that several labs live side by side and a lab that died finds
and removes what it left.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.description import LabDescription

BRIDGE = "br0"
COMMAND_TIMEOUT_S = 15
_NAMESPACES = Path("/run/netns")
_LINKS = IPv4Network("169.254.64.0/18")
_LINK_NETWORKS = _LINKS.num_addresses // 4
NEEDS_ROOT = "a lab needs root for its network namespace; run as root or by sudo"


class LabNetworkError(IronbellError):
    """The namespace cannot be created."""

    reason = "LabNetworkFailed"
    retry = Retry.NEVER


@dataclass(frozen=True)
class LabNetwork:
    """A lab's network."""

    namespace: str
    lab: LabDescription

    @classmethod
    def of(cls, lab: LabDescription, folder: Path) -> LabNetwork:
        digest = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:8]
        return cls(f"ironbell-{digest}", lab)

    @property
    def path(self) -> Path:
        """Path by which other processes enter it."""
        return _NAMESPACES / self.namespace

    def tap(self, name: str) -> str:
        """The tap of a machine; interface names have at most 15 characters."""
        return f"tap{self._place(name)}"

    def _place(self, name: str) -> int:
        return [machine.name for machine in self.lab.machines].index(name)

    def machine_path(self, name: str) -> Path:
        """Path by which other processes enter the network of a machine that is made of namespaces."""
        return self.path.with_name(f"{self.namespace}-{self._place(name)}")

    def connect(self, name: str) -> None:
        """Give such a machine a network of its own, with one card whose other end is on the bridge.

        Raises:
            LabNetworkError: no privilege, or no `ip` command.
        """
        self.disconnect(name)
        inside, card, mac = self.machine_path(name).name, f"card{self._place(name)}", self.lab.machine(name).mac
        _ip("netns", "add", inside)
        self._inside("link", "add", card, "type", "veth", "peer", "name", "eth0", "address", mac, "netns", inside)
        self._inside("link", "set", card, "master", BRIDGE, "up")
        _ip("-n", inside, "link", "set", "lo", "up")
        _ip("-n", inside, "link", "set", "eth0", "up")

    def disconnect(self, name: str) -> None:
        """Take the machine's network away with all processes in it."""
        # first the card: the kernel removes a namespace late, and the name is needed again
        _run("ip", "-n", self.namespace, "link", "delete", f"card{self._place(name)}")
        _remove(self.machine_path(name).name)

    def command(self, *words: str) -> list[str]:
        """A command to run inside."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def create(self) -> None:
        """Create it again; the network of a dead lab is removed first.

        Raises:
            LabNetworkError: no privilege, or no `ip` command.
        """
        if os.geteuid() != 0:
            raise LabNetworkError(NEEDS_ROOT)
        self.remove()
        _ip("netns", "add", self.namespace)
        prefix = self.lab.network.network.prefixlen
        self._inside("link", "set", "lo", "up")
        self._inside("link", "add", BRIDGE, "type", "bridge", "stp_state", "0", "forward_delay", "0")
        self._inside("address", "add", f"{self.lab.network.gateway}/{prefix}", "dev", BRIDGE)
        self._inside("link", "set", BRIDGE, "up")
        if self.lab.network.reachable:
            self._connect_host()
        for machine in self.lab.machines:
            if machine.kind != "qemu":
                continue
            tap = self.tap(machine.name)
            self._inside("tuntap", "add", "dev", tap, "mode", "tap")
            self._inside("link", "set", tap, "master", BRIDGE, "up")

    def remove(self) -> None:
        """Remove it with all processes in it, if it exists."""
        remove_networks(self.namespace)

    def _connect_host(self) -> None:
        """Route from this host to the machines and back, rather than bridge: broadcasts, so DHCP, stay inside."""
        digest = self.namespace.rpartition("-")[2]
        # RFC 3927's range is not routed anywhere else; four addresses of it, by the lab's name
        first = int(digest, 16) % _LINK_NETWORKS * 4
        host, inside = (_LINKS[first + number] for number in (1, 2))
        link = f"lab{digest}"
        _ip("link", "add", link, "type", "veth", "peer", "name", "host0", "netns", self.namespace)
        self._inside("address", "add", f"{inside}/30", "dev", "host0")
        self._inside("link", "set", "host0", "up")
        _ip("address", "add", f"{host}/30", "dev", link)
        _ip("link", "set", link, "up")
        subnet = str(self.lab.network.network)
        routed = _run("ip", "route", "add", subnet, "via", str(inside), "dev", link)
        if routed.returncode != 0:
            self.remove()
            raise LabNetworkError(
                f"this host has a route to {subnet} already ({routed.stderr.strip()}), perhaps of another "
                "lab that runs: end that, or choose another (network.subnet in a lab file, --subnet of the demo)"
            )
        forwarding = _run(*self.command("sysctl", "-q", "-w", "net.ipv4.ip_forward=1"))
        if forwarding.returncode != 0:
            raise LabNetworkError(f"sysctl net.ipv4.ip_forward: {forwarding.stderr.strip()}")

    def _inside(self, *words: str) -> None:
        _ip("-n", self.namespace, *words)


def remove_networks(namespace: str) -> None:
    """Remove a lab's namespace and those of its machines, with all processes in them, as far as they exist."""
    for path in sorted(_NAMESPACES.glob(f"{namespace}*")):
        _remove(path.name)


def _remove(namespace: str) -> None:
    """Remove a namespace with all processes in it, if it exists."""
    if not (_NAMESPACES / namespace).exists():
        return
    pids = _run("ip", "netns", "pids", namespace)
    for pid in pids.stdout.split():
        if int(pid) != os.getpid():
            _kill(int(pid))
    _run("ip", "netns", "delete", namespace)


def _ip(*words: str) -> None:
    done = _run("ip", *words)
    if done.returncode != 0:
        raise LabNetworkError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise LabNetworkError("the `ip` command is missing; install iproute2") from error


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
