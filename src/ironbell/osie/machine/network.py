"""Carries out a network plan with `ip` and udhcpc, and reports the result.

udhcpc stays behind every interface to renew its lease; its script (`files/udhcpc`) applies addresses and routes and
leaves the lease in /run/ironbell/leases.

Failure modes: `NetworkError` with what to check, when nothing was configured in time; the caller tries again.

Source: busybox: networking/udhcp.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.clock import SystemClock
from ironbell.osie.machine.plan import NetworkPlan, Nic

SYS_NET = Path("/sys/class/net")
LEASES = Path("/run/ironbell/leases")
RESOLV_CONF = Path("/etc/resolv.conf")
DHCP_SCRIPT = "/usr/lib/ironbell/udhcpc"
_ARPHRD_ETHER = "1"
_POLL_S = 0.1


class NetworkError(Exception):
    """The network could not be configured; the message names what to check."""


@dataclass(frozen=True)
class Connection:
    """The configured network. A field is empty where neither DHCP nor the plan set it."""

    interface: str
    address: str
    hostname: str = ""
    name_servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    server: str = ""


def nics(folder: Path = SYS_NET) -> list[Nic]:
    """Ethernet interfaces of hardware, or of a virtual machine's virtual hardware."""
    if not folder.is_dir():
        return []
    paths = (path for path in sorted(folder.iterdir()) if (path / "device").exists())
    return [Nic(path.name, _read(path / "address").lower()) for path in paths if _read(path / "type") == _ARPHRD_ETHER]


def parse_lease(text: str, *, interface: str) -> Connection:
    """The lease that the DHCP script wrote."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    search = values.get("search", "") or values.get("domain", "")
    return Connection(
        interface=interface,
        address=values.get("ip", ""),
        hostname=values.get("hostname", ""),
        name_servers=tuple(values.get("dns", "").split()),
        search=tuple(search.split()),
        time_servers=tuple(values.get("ntpsrv", "").split()),
        server=values.get("serverid", "") or values.get("siaddr", ""),
    )


def connect(plan: NetworkPlan, *, clients: dict[str, subprocess.Popen[bytes]], timeout_s: float) -> Connection:
    """Bring the plan's interfaces up and wait for the first that has an address.

    `clients` keeps the DHCP clients between calls, so that a second attempt starts no second client.

    Raises:
        NetworkError: no interface has an address in time.
    """
    names = [_tagged(name, plan.vlan_id) for name in plan.interfaces]
    if plan.static is not None:
        connection = _configure(plan, names[0])
    else:
        for name in names:
            _start_client(name, clients)
        connection = _await_lease(names, timeout_s)
    _write_resolver(connection)
    return connection


def _tagged(name: str, vlan_id: str) -> str:
    _ip("link", "set", "dev", name, "up")
    if not vlan_id:
        return name
    tagged = f"{name}.{vlan_id}"
    if not (SYS_NET / tagged).exists():
        _ip("link", "add", "link", name, "name", tagged, "type", "vlan", "id", vlan_id)
    _ip("link", "set", "dev", tagged, "up")
    return tagged


def _configure(plan: NetworkPlan, name: str) -> Connection:
    static = plan.static
    if static is None:
        raise NetworkError("no static address in the plan")
    _ip("address", "replace", f"{static.address}/{static.prefix_length}", "dev", name)
    if static.gateway:
        _ip("route", "replace", "default", "via", static.gateway, "dev", name, "onlink")
    return Connection(
        interface=name,
        address=static.address,
        hostname=plan.hostname,
        name_servers=plan.name_servers,
        search=plan.search,
        time_servers=plan.time_servers,
    )


def _start_client(name: str, clients: dict[str, subprocess.Popen[bytes]]) -> None:
    running = clients.get(name)
    if running is not None and running.poll() is None:
        return
    options = ["-f", "-t", "10", "-T", "2", "-A", "5", "-s", DHCP_SCRIPT, "-O", "ntpsrv", "-O", "search"]
    command = ["busybox", "udhcpc", "-i", name, *options, "-O", "staticroutes", "-O", "mtu"]
    clients[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _await_lease(names: list[str], timeout_s: float) -> Connection:
    clock = SystemClock()
    deadline = clock.monotonic() + timeout_s
    while clock.monotonic() < deadline:
        for name in names:
            text = _read(LEASES / name)
            if text:
                return parse_lease(text, interface=name)
        time.sleep(_POLL_S)
    dark = [name for name in names if _read(SYS_NET / name / "carrier") != "1"]
    hint = f"; no carrier on {', '.join(dark)}: check cable and switch port" if dark else ""
    raise NetworkError(f"no DHCP server answered on {', '.join(names)} within {timeout_s:.0f} s{hint}")


def _write_resolver(connection: Connection) -> None:
    lines = [f"search {' '.join(connection.search)}"] if connection.search else []
    lines += [f"nameserver {server}" for server in connection.name_servers]
    RESOLV_CONF.write_text("\n".join(lines) + "\n")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
