"""DHCP: OFFERs per second against dnsmasq, with the same machines reserved in both.

    sudo python bench/dhcp.py [--machines 10000] [--seconds 3] [--rounds 3] [--pxe]

Two network namespaces joined by a veth pair; the server in one, a load client in the other that speaks as a relay
(so that both servers answer by unicast) and keeps a fixed number of DISCOVERs of different machines in flight. Both
servers run in the same minute with the same client. CPU is the server process's own, user and system.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import uvloop

SERVER, CLIENT = IPv4Address("10.66.0.1"), IPv4Address("10.66.0.2")
FIRST = int(IPv4Address("10.66.1.0"))
OFFER = b"\x35\x01\x02"
"""Option 53 of an OFFER, wherever in the message the server puts it."""
PXE = {60: b"PXEClient:Arch:00007:UNDI:003016", 93: b"\0\7", 94: b"\1\3\0", 97: b"\0" + b"u" * 16}


def mac_of(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in (0x02, 0, *number.to_bytes(4, "big")))


def main() -> None:
    arguments = parse()
    if arguments.role == "server":
        uvloop.run(serve(arguments.machines))
    elif arguments.role == "client":
        load(arguments)
    else:
        compare(arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--pxe", action="store_true", help="boot clients instead of plain ones")
    parser.add_argument("--role", choices=["compare", "server", "client"], default="compare", help=argparse.SUPPRESS)
    return parser.parse_args()


def compare(arguments: argparse.Namespace) -> None:
    """Rounds alternate between the servers; the best of each counts, since whatever else runs only ever slows."""
    with namespaces() as (server_space, client_space), tempfile.TemporaryDirectory() as folder:
        commands = {"ironbell": [sys.executable, __file__, "--role", "server", "--machines", str(arguments.machines)]}
        if shutil.which("dnsmasq"):
            commands["dnsmasq"] = dnsmasq(arguments.machines, Path(folder))
        best = dict.fromkeys(commands, (0.0, 0.0))
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                figures = measure(command, arguments, server_space=server_space, client_space=client_space)
                best[name] = max(best[name], figures)
    kind = "PXE" if arguments.pxe else "plain"
    for name, (rate, cpu_us) in best.items():
        print(f"{name:10} {rate:10.0f} OFFER/s  {cpu_us:7.1f} us CPU each  ({arguments.machines} machines, {kind})")
    if "dnsmasq" not in best:
        print("dnsmasq is not installed: nothing to compare with")
        return
    (rate, cpu_us), (other_rate, other_cpu_us) = best["ironbell"], best["dnsmasq"]
    print(f"ratio      {rate / other_rate:10.2f} x dnsmasq's rate, {cpu_us / other_cpu_us:.2f} x its CPU")


@contextmanager
def namespaces() -> Iterator[tuple[str, str]]:
    server, client = (f"ibbench{os.getpid()}{side}" for side in "sc")
    made = []
    try:
        for name in (server, client):
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", server, "link", "add", "lan", "type", "veth", "peer", "name", "lan", "netns", client)
        for name, address in ((server, SERVER), (client, CLIENT)):
            ip("-n", name, "addr", "add", f"{address}/16", "brd", "+", "dev", "lan")
            ip("-n", name, "link", "set", "lan", "up")
        yield server, client
    finally:
        for name in made:
            ip("netns", "del", name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def dnsmasq(machines: int, folder: Path) -> list[str]:
    hosts = folder / "hosts"
    lines = [f"{mac_of(number)},{IPv4Address(FIRST + number)},node-{number}" for number in range(machines)]
    hosts.write_text("\n".join(lines) + "\n")
    return [
        "dnsmasq", "--keep-in-foreground", "--port=0", "--interface=lan", "--no-ping", "--conf-file=/dev/null",
        "--leasefile-ro", "--pid-file=", "--user=root", "--quiet-dhcp", "--log-facility=-", "--dhcp-lease-max=100000",
        f"--dhcp-hostsfile={hosts}", "--dhcp-range=10.66.0.0,static,255.255.0.0", "--dhcp-boot=ipxe.efi",
    ]  # fmt: skip


def measure(
    command: list[str], arguments: argparse.Namespace, *, server_space: str, client_space: str
) -> tuple[float, float]:
    """OFFERs per second and microseconds of the server's CPU for each."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", server_space, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        client = subprocess.Popen(
            [
                "ip", "netns", "exec", client_space, sys.executable, __file__, "--role", "client",
                "--machines", str(arguments.machines), "--seconds", str(arguments.seconds),
                "--in-flight", str(arguments.in_flight), *(["--pxe"] if arguments.pxe else []),
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert client.stdout is not None
        client.stdout.readline()
        before = cpu_seconds(server.pid)
        offers, seconds = client.stdout.readline().split()
        used = cpu_seconds(server.pid) - before
        client.wait()
        client.stdout.close()
    finally:
        server.terminate()
        server.wait()
    return int(offers) / float(seconds), used / max(int(offers), 1) * 1e6


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(arguments: argparse.Namespace) -> None:
    """Count OFFERs. Every machine has been asked for once before the clock starts."""
    from ironbell.codec.dhcp import Op, Packet, encode

    options = {53: b"\x01", 55: bytes((1, 3, 6, 12, 15, 51, 54))} | (PXE if arguments.pxe else {})
    datagrams = [
        encode(
            Packet(
                op=Op.REQUEST, xid=number, chaddr=bytes.fromhex(mac_of(number).replace(":", "")), giaddr=CLIENT, hops=1,
                options=options,
            )
        )
        for number in range(arguments.machines)
    ]  # fmt: skip
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((str(CLIENT), 67))
    sock.connect((str(SERVER), 67))
    sock.settimeout(0.2)
    until_answered(sock, datagrams[0])
    exchange(sock, datagrams, window=arguments.in_flight, until=lambda sent: sent >= len(datagrams))
    print("started", flush=True)
    started = time.monotonic()
    deadline = started + arguments.seconds
    offers = exchange(sock, datagrams, window=arguments.in_flight, until=lambda _: time.monotonic() >= deadline)
    print(offers, time.monotonic() - started, flush=True)


def exchange(sock: socket.socket, datagrams: list[bytes], *, window: int, until: Callable[[int], bool]) -> int:
    """Keep a window of DISCOVERs in flight; the number of OFFERs."""
    offers = sent = 0
    in_flight = 0
    while not until(sent):
        while in_flight < window:
            sock.send(datagrams[sent % len(datagrams)])
            sent += 1
            in_flight += 1
        try:
            for _ in range(window // 2):
                if OFFER in sock.recv(2048):
                    offers += 1
                in_flight -= 1
        except TimeoutError:
            in_flight = 0
    return offers


def until_answered(sock: socket.socket, datagram: bytes) -> None:
    for _ in range(200):
        try:
            sock.send(datagram)
            sock.recv(2048)
        except TimeoutError:
            continue
        except ConnectionRefusedError:
            time.sleep(0.05)
            continue
        return
    raise SystemExit("the server does not answer")


async def serve(machines: int) -> None:
    """The product's server with as many Hardware."""
    import logging

    import structlog

    from ironbell.api.meta import ObjectMeta
    from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
    from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip, Netboot
    from ironbell.base.clock import SystemClock
    from ironbell.contract.servers.directory import HardwareDirectory
    from ironbell.contract.servers.netboot import NetbootSettings, netboot_plan
    from ironbell.services.dhcp import DhcpServer, DhcpSettings, open_dhcp_socket

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    directory = HardwareDirectory()
    for number in range(machines):
        address = Ip(address=str(IPv4Address(FIRST + number)), netmask="255.255.0.0", gateway=str(SERVER))
        interface = Interface(
            dhcp=Dhcp(mac=mac_of(number), ip=address, hostname=f"node-{number}"), netboot=Netboot(allow_pxe=True)
        )
        directory.upsert(
            Hardware(
                metadata=ObjectMeta(name=f"node-{number}", namespace="b"), spec=HardwareSpec(interfaces=[interface])
            )
        )
    policy = NetbootSettings(osie_url="http://{address}:7173", grpc_authority="{address}:42113")
    server = DhcpServer(
        open_dhcp_socket("lan"),
        interface="lan",
        settings=DhcpSettings(),
        directory=directory,
        plan=lambda hardware, interface, address: netboot_plan(hardware, interface, policy, address=address),
        clock=SystemClock(),
    )
    await server.run()


if __name__ == "__main__":
    main()
