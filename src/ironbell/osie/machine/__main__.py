"""The boot stage: sets up network, clock and trust and starts the agent, in that order, each retried until it works.

Runs as a child of the first process for as long as the machine is in the in-memory OS. A failure is printed on every
console and sent to syslog, with what to check, and is retried with growing pauses.
"""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from ironbell.base.clock import SystemClock
from ironbell.osie.machine import cmdline, timekeeping, trust
from ironbell.osie.machine.agent import supervise
from ironbell.osie.machine.console import Console, consoles
from ironbell.osie.machine.network import Connection, NetworkError, connect, nics
from ironbell.osie.machine.plan import plan

CLOCK = SystemClock()
_BUILD_TIME = Path("/etc/ironbell/build-time")
_PROXY = Path("/etc/ironbell/proxy")
_LOG = Path("/run/ironbell/console.log")
_LEASE_TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 30.0


def main() -> None:
    """Boot this machine's network and agent. Does not return while an agent runs."""
    console = Console(devices=consoles(), log=_LOG)
    proxy = _PROXY.read_text().strip() if _PROXY.exists() else ""
    arguments = cmdline.parse(Path("/proc/cmdline").read_text(), built_in_proxy=proxy)
    console.report(f"in-memory OS for machine {arguments.worker_id or 'without a name'}")
    connection = bring_up_network(arguments, console)
    name = set_hostname(connection, arguments)
    if arguments.syslog_host:
        console.send_to_syslog(arguments.syslog_host, hostname=name)
    settle_clock(arguments, connection, console)
    trust.extend(arguments, console)
    await_devices(console)
    supervise(arguments, console)


def bring_up_network(arguments: cmdline.Arguments, console: Console) -> Connection:
    """Try until the machine has an address; every attempt names the missing interface."""
    clients: dict[str, subprocess.Popen[bytes]] = {}
    pause_s = 0.0
    while True:
        pause_s = min(max(pause_s * 2, _FIRST_PAUSE_S), _LAST_PAUSE_S)
        try:
            desired = plan(arguments, nics())
            if not desired.missing:
                connection = connect(desired, clients=clients, timeout_s=_LEASE_TIMEOUT_S)
                console.report(f"network: {connection.address} on {connection.interface}")
                return connection
            # Drivers load while we wait, so the first second is not worth a message.
            if pause_s > _FIRST_PAUSE_S:
                seen = ", ".join(f"{nic.name} {nic.mac}" for nic in nics()) or "none"
                console.report(f"network: waiting for {desired.missing}; interfaces present: {seen}")
        except (NetworkError, ValueError) as error:
            console.report(f"network: {error}")
        time.sleep(pause_s if pause_s > _FIRST_PAUSE_S else 0.2)


def set_hostname(connection: Connection, arguments: cmdline.Arguments) -> str:
    """Set the hostname that the network assigned, else the worker id."""
    name = connection.hostname or arguments.worker_id.replace(":", "-") or "osie"
    try:
        socket.sethostname(name)
    except OSError:
        return name
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost\n")
    return name


def settle_clock(arguments: cmdline.Arguments, connection: Connection, console: Console) -> None:
    """Set the clock from the first source that answers, before any certificate is checked."""
    built_unix_s = float(_BUILD_TIME.read_text()) if _BUILD_TIME.exists() else 0.0
    hosts = dict.fromkeys(host for host in (arguments.grpc_authority.rpartition(":")[0], connection.server) if host)
    reading = timekeeping.read_time(
        time_servers=connection.time_servers, hosts=hosts, script_unix_s=arguments.unix_time, clock=CLOCK
    )
    now_unix_s = CLOCK.now().timestamp()
    desired = timekeeping.correction(now_unix_s=now_unix_s, reading=reading, built_unix_s=built_unix_s)
    if desired is None:
        return
    try:
        timekeeping.set_clock(desired.unix_s)
    except OSError as error:
        console.report(f"clock: cannot be set: {error.strerror}")
        return
    console.report(f"clock: set to {timekeeping.describe(desired.unix_s)} by {desired.source}")


def await_devices(console: Console) -> None:
    """Wait until the disks are detected, and start listening to the power button."""
    done = subprocess.run(["udevadm", "settle", "--timeout=30"], check=False)
    if done.returncode != 0:
        console.report("devices: detection is not complete after 30 s; continuing")
    subprocess.run(["busybox", "acpid", "-l", "/dev/null"], check=False)


if __name__ == "__main__":
    main()
