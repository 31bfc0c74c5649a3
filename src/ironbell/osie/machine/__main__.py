"""The boot stage: network, clock, trust, agent; in that order, each tried until it works.

Runs as a child of the first process for as long as the machine is in the in-memory OS. Whatever fails is said on every
console and to syslog, with what to look at, and tried again with growing pauses.
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
    """Boot this machine's network and agent. Does not return while there is an agent to run."""
    console = Console(devices=consoles(), log=_LOG)
    proxy = _PROXY.read_text().strip() if _PROXY.exists() else ""
    arguments = cmdline.parse(Path("/proc/cmdline").read_text(), built_in_proxy=proxy)
    console.say(f"in-memory OS for machine {arguments.worker_id or 'without a name'}")
    connection = bring_up_network(arguments, console)
    name = set_hostname(connection, arguments)
    if arguments.syslog_host:
        console.send_to_syslog(arguments.syslog_host, hostname=name)
    settle_clock(arguments, connection, console)
    trust.extend(arguments, console)
    await_devices(console)
    supervise(arguments, console)


def bring_up_network(arguments: cmdline.Arguments, console: Console) -> Connection:
    """Try until there is an address; what is missing is said at every try."""
    clients: dict[str, subprocess.Popen[bytes]] = {}
    pause_s = 0.0
    while True:
        pause_s = min(max(pause_s * 2, _FIRST_PAUSE_S), _LAST_PAUSE_S)
        try:
            wanted = plan(arguments, nics())
            if not wanted.missing:
                connection = connect(wanted, clients=clients, timeout_s=_LEASE_TIMEOUT_S)
                console.say(f"network: {connection.address} on {connection.interface}")
                return connection
            # Drivers load while we wait: the first second is no reason to say anything.
            if pause_s > _FIRST_PAUSE_S:
                seen = ", ".join(f"{nic.name} {nic.mac}" for nic in nics()) or "none"
                console.say(f"network: waiting for {wanted.missing}; interfaces here: {seen}")
        except (NetworkError, ValueError) as error:
            console.say(f"network: {error}")
        time.sleep(pause_s if pause_s > _FIRST_PAUSE_S else 0.2)


def set_hostname(connection: Connection, arguments: cmdline.Arguments) -> str:
    """Name the machine as the network calls it, else after its worker id."""
    name = connection.hostname or arguments.worker_id.replace(":", "-") or "osie"
    try:
        socket.sethostname(name)
    except OSError:
        return name
    Path("/etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost\n")
    return name


def settle_clock(arguments: cmdline.Arguments, connection: Connection, console: Console) -> None:
    """Set the clock from whoever can be asked before a certificate is looked at."""
    built_unix_s = float(_BUILD_TIME.read_text()) if _BUILD_TIME.exists() else 0.0
    hosts = dict.fromkeys(host for host in (arguments.grpc_authority.rpartition(":")[0], connection.server) if host)
    reading = timekeeping.find(
        time_servers=connection.time_servers, hosts=hosts, told_unix_s=arguments.unix_time, clock=CLOCK
    )
    now_unix_s = CLOCK.now().timestamp()
    wanted = timekeeping.correction(now_unix_s=now_unix_s, reading=reading, built_unix_s=built_unix_s)
    if wanted is None:
        return
    try:
        timekeeping.set_clock(wanted.unix_s)
    except OSError as error:
        console.say(f"clock: cannot be set: {error.strerror}")
        return
    console.say(f"clock: set to {timekeeping.describe(wanted.unix_s)} by {wanted.source}")


def await_devices(console: Console) -> None:
    """Wait for the disks that are being found, and start listening to the power button."""
    done = subprocess.run(["udevadm", "settle", "--timeout=30"], check=False)
    if done.returncode != 0:
        console.say("devices: some are still being looked at after 30 s; going on")
    subprocess.run(["busybox", "acpid", "-l", "/dev/null"], check=False)


if __name__ == "__main__":
    main()
