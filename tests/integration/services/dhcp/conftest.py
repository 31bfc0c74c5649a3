"""A network of the test's own: a bridge in one namespace, hosts in others, nothing of the machine's touched."""

from __future__ import annotations

import ctypes
import itertools
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from ironbell.codec.dhcp import DecodeError, Op, Packet, decode, encode
from ironbell.services.dhcp.sockets import open_dhcp_socket
from support.skips import require_program, require_root

T = TypeVar("T")
CLONE_NEWNET = 0x40000000
SERVE = Path(__file__).parent / "serve.py"
_numbers = itertools.count()


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Process:
    """A program in a namespace, its output read line by line in the background."""

    def __init__(self, argv: list[str]) -> None:
        self.popen = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.put(line)

    def wait_for(self, text: str, timeout_s: float = 20) -> str:
        """The first line from now on that contains `text`."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                pytest.fail(f"no line with {text!r} within {timeout_s} s; there was: {''.join(self.seen)}")
            self.seen.append(line)
            if text in line:
                return line

    def stop(self) -> None:
        self.popen.terminate()
        self.popen.wait(10)
        self._reader.join(10)
        assert self.popen.stdout is not None
        self.popen.stdout.close()


class Client:
    """A DHCP client that sends what it is told and returns what answers."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def ask(self, packet: Packet, *, to: tuple[str, int] = ("255.255.255.255", 67)) -> None:
        self.socket.sendto(encode(packet), to)

    def replies(self, xid: int, *, count: int = 1, timeout_s: float = 5) -> list[tuple[Packet, str]]:
        """Replies with their source addresses, until there are `count` of them or the time is over."""
        found: list[tuple[Packet, str]] = []
        deadline = time.monotonic() + timeout_s
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data, (source, _) = self.socket.recvfrom(4096)
                packet = decode(data)
            except (TimeoutError, DecodeError):
                continue
            if packet.op == Op.REPLY and packet.xid == xid:
                found.append((packet, source))
        return found

    def reply(self, packet: Packet, *, to: tuple[str, int] = ("255.255.255.255", 67), timeout_s: float = 5) -> Packet:
        self.ask(packet, to=to)
        found = self.replies(packet.xid, timeout_s=timeout_s)
        assert found, f"no reply to {packet}"
        return found[0][0]


class Network:
    """Hosts on one bridge. The interface of every host is called `lan`."""

    def __init__(self) -> None:
        self.prefix = f"ib{os.getpid() % 100000}n{next(_numbers)}"
        self.namespaces: list[str] = []
        self.processes: list[Process] = []
        self.sockets: list[socket.socket] = []
        self._namespace("sw")
        ip("-n", self.name("sw"), "link", "add", "br0", "type", "bridge")
        ip("-n", self.name("sw"), "link", "set", "br0", "up")

    def name(self, host: str) -> str:
        return f"{self.prefix}{host}"

    def _namespace(self, host: str) -> None:
        ip("netns", "add", self.name(host))
        self.namespaces.append(self.name(host))
        ip("-n", self.name(host), "link", "set", "lo", "up")

    def add(self, host: str, *addresses: str, mac: str = "") -> None:
        """A host with these addresses (with prefix length) on the bridge."""
        self._namespace(host)
        port, switch = f"p-{host}", self.name("sw")
        ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "lan", "netns", self.name(host))
        ip("-n", switch, "link", "set", port, "master", "br0", "up")
        if mac:
            ip("-n", self.name(host), "link", "set", "lan", "address", mac)
        for address in addresses:
            ip("-n", self.name(host), "addr", "add", address, "brd", "+", "dev", "lan")
        ip("-n", self.name(host), "link", "set", "lan", "up")

    def start(self, host: str, *argv: str) -> Process:
        process = Process(["ip", "netns", "exec", self.name(host), *argv])
        self.processes.append(process)
        return process

    def serve(self, host: str, tmp_path: Path, hardware: list[Any], **settings: Any) -> Process:
        """Our server on a host's interface."""
        file = tmp_path / f"{host}.json"
        file.write_bytes(msgspec.json.encode({"hardware": hardware, "settings": settings}))
        process = self.start(host, sys.executable, str(SERVE), str(file))
        process.wait_for("ready")
        return process

    def within(self, host: str, function: Callable[[], T]) -> T:
        """Call a function in a host's network namespace, in a thread of its own."""
        results: list[T] = []
        errors: list[BaseException] = []

        def call() -> None:
            try:
                with Path(f"/run/netns/{self.name(host)}").open() as handle:
                    libc = ctypes.CDLL(None, use_errno=True)
                    assert libc.setns(handle.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
                results.append(function())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def client(self, host: str, port: int = 68) -> Client:
        sock = self.within(host, lambda: open_dhcp_socket("lan", port))
        self.sockets.append(sock)
        return Client(sock)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        for process in self.processes:
            process.stop()
        for namespace in self.namespaces:
            ip("netns", "del", namespace)


@pytest.fixture
def network() -> Iterator[Network]:
    require_root()
    require_program("ip")
    made = Network()
    try:
        yield made
    finally:
        made.close()
