"""Strangers on the machines' network who flood the gRPC port: everybody else is answered in time, in the same memory.

Everything is real: packets from network namespaces, processes that may have 1,024 files open, and machines that get
addresses and boot files and are being installed while the flood is on.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from grpclib.client import Channel
from grpclib.protocol import H2Protocol

from ironbell.agent.rpc import CallError, Client
from ironbell.agent.settings import Settings
from ironbell.codec.dhcp import MessageType
from ironbell.codec.proto import workflow_pb2
from support.lab.faults import HTTP, OURS, FaultLab, fault_lab
from support.network import firmware
from support.network.machine import NetMachine, action, template, workflow
from support.network.namespaces import entered, within
from support.site.up import BOOT, CORE, WORKFLOWS, Seen, is_alive, seen
from support.waiting import until

T = TypeVar("T")

pytestmark = pytest.mark.root

FILES = 1024
"""The usual limit."""
GRPC = 42113
STRANGERS = tuple(f"192.0.2.{number}" for number in range(200, 206))
FLOOD_S = 3.0
SOON_S = 1.0
MEMORY = 64 << 20
"""By how much a process may grow during a flood."""
STAYS = 24 << 20
"""By how much it may be larger afterwards: what an allocator keeps."""
SETTLED_S = 20.0
PATIENCE_S = 10.0
ACTIONS = 100
PAUSE_S = 0.05
"""Between two actions: fewer than there are take place during a flood, however fast everybody is."""
ATTACKS = {
    # first, since it takes memory that a process may have left of another attack
    "CONTINUATION": "headers without an end",
    "resets": "resets",
    "PING": "PING",
    "SETTINGS": "SETTINGS",
    "WINDOW_UPDATE": "WINDOW_UPDATE",
    "large messages": "large messages",
    "messages just allowed": "messages just allowed",
    "idle connections": "idle",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    """A site whose processes may have so many files open, and strangers on its network."""
    with fault_lab(tmp_path_factory.mktemp("lab"), files=FILES) as made:
        made.lan.add("strangers", *(f"{address}/24" for address in STRANGERS))
        yield made


@dataclass
class Answers:
    """How long somebody waited for each answer, in seconds; what never came counts as `PATIENCE_S`."""

    name: str
    seconds: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except (OSError, CallError, TimeoutError):
            self.seconds.append(PATIENCE_S)
        else:
            self.seconds.append(time.monotonic() - began)

    @property
    def p99_s(self) -> float:
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]

    def __str__(self) -> str:
        return f"{self.name}: {len(self.seconds)} answers, p99 {self.p99_s:.3f} s"


def children(pid: int) -> list[int]:
    """All processes below one, and it."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(below for word in words for below in children(int(word)))]
    return []


def resident(pid: int) -> int:
    with contextlib.suppress(OSError):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return int(fields.get("VmRSS", "0 kB").split()[0]) << 10
    return 0


@dataclass
class Memory:
    """Of every process of a site: at first, and at most since."""

    first: dict[int, int]
    most: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, site_pid: int) -> Memory:
        return cls({pid: resident(pid) for pid in children(site_pid)})

    def look(self) -> None:
        for pid in self.first:
            self.most[pid] = max(self.most.get(pid, 0), resident(pid))

    def grown(self) -> int:
        return max(self.most[pid] - self.first[pid] for pid in self.first)

    def left(self) -> int:
        return max(resident(pid) - self.first[pid] for pid in self.first)


class Watcher:
    """Asks again and again, in a thread within a namespace, until it is stopped."""

    def __init__(self, name: str, namespace: str, ask: Callable[[], object], *, pause_s: float = 0.05) -> None:
        self.answers = Answers(name)
        self._namespace, self._ask, self._pause_s = namespace, ask, pause_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with entered(self._namespace):
            while not self._stopped.is_set():
                with self.answers.timed():
                    self._ask()
                self._stopped.wait(self._pause_s)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def health() -> None:
    with urllib.request.urlopen(f"http://{HTTP}/healthz", timeout=PATIENCE_S) as answer:
        assert answer.read() == b"ok"


def offer(machine: NetMachine) -> Callable[[], None]:
    """Ask for an address, as firmware does, which asks again each second."""

    def ask() -> None:
        packet = firmware.message(machine.mac, MessageType.DISCOVER, firmware.BIOS)
        if firmware.exchange(packet, wait_s=PATIENCE_S) is None:
            raise TimeoutError

    return ask


def first_block() -> None:
    """Ask for a boot file until its first block is there, as firmware does, which asks again each second."""
    request = b"\0\1undionly.kpxe\0octet\0"
    until = time.monotonic() + PATIENCE_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(1.0)
        while time.monotonic() < until:
            sock.sendto(request, (OURS, 69))
            with contextlib.suppress(TimeoutError):
                data, server = sock.recvfrom(2048)
                assert data[:4] == b"\0\3\0\1", data[:100]
                sock.sendto(b"\0\5\0\0enough\0", server)
                return
    raise TimeoutError


class FromMachine(Channel):
    """A connection from a machine's own address, by which it is known."""

    def __init__(self, namespace: str) -> None:
        super().__init__(OURS, GRPC)
        self._namespace = namespace

    async def _create_connection(self) -> H2Protocol:
        sock = await asyncio.to_thread(within, self._namespace, lambda: socket.create_connection((OURS, GRPC)))
        _, protocol = await self._loop.create_connection(self._protocol_factory, sock=sock)
        return protocol


class Installation:
    """An agent that carries out one action after the other."""

    def __init__(self, machine: NetMachine) -> None:
        self._machine = machine
        self.answers = Answers("installation")
        self.done = 0

    async def begin(self, watching: Seen, name: str) -> None:
        actions = [action(f"a{number}", "writefile") for number in range(ACTIONS)]
        await watching.apply(self._machine.hardware(), template(name, *actions), workflow(name, self._machine))
        await watching.until(lambda: watching.state(name) == "PENDING", within_s=30, what="it waits for its agent")

    async def go_on(self, client: Client, seconds: float, look: Callable[[], None]) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            found = await self._timed(lambda: client.get_action(workflow_pb2.ActionRequest(agent_id=self._machine.mac)))
            if found is not None:
                for state in ("RUNNING", "SUCCESS"):
                    await self._report(client, found, state)
                self.done += 1
            look()
            await asyncio.sleep(PAUSE_S)

    async def _report(self, client: Client, found: workflow_pb2.ActionResponse, state: str) -> None:
        request = workflow_pb2.ActionStatusRequest(
            workflow_id=found.workflow_id, task_id=found.task_id, action_id=found.action_id,
            agent_id=self._machine.mac, action_name=found.name,
            action_state=workflow_pb2.ActionStatusRequest.StateType.Value(state),
        )  # fmt: skip
        await self._timed(lambda: client.report(request))

    async def _timed(self, call: Callable[[], Awaitable[T]]) -> T | None:
        with self.answers.timed():
            async with asyncio.timeout(PATIENCE_S):
                return await call()
        return None


@contextlib.contextmanager
def flooding(lab: FaultLab, kind: str) -> Iterator[None]:
    """Strangers in a process of their own, which leaves the processor to the site, as other hosts do."""
    inside = ("nice", "-n", "10", "ip", "netns", "exec", lab.lan.name("strangers"))
    command = [*inside, sys.executable, "-m", "support.network.floods", kind, OURS, str(GRPC), *STRANGERS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        yield
        assert process.poll() is None, "the strangers went away"
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.parametrize("kind", ATTACKS.values(), ids=ATTACKS)
async def test_everybody_else_is_answered_during_a_flood(lab: FaultLab, kind: str) -> None:
    name = kind.replace(" ", "-").replace("_", "-").lower()
    machine = lab.machine(name)
    machine.give_address()
    ours = [lab.site.child(module) for module in (CORE, BOOT, WORKFLOWS)]
    installation = Installation(machine)
    async with seen(lab.site) as watching:
        await installation.begin(watching, name)
    memory = Memory.of(lab.site.pid)
    client = Client(Settings(agent_id=machine.mac, host=OURS, port=GRPC), channel=FromMachine(machine.namespace))
    watchers = [
        Watcher("health", lab.lan.site, health),
        Watcher("DHCP", machine.namespace, offer(machine)),
        Watcher("TFTP", machine.namespace, first_block),
    ]
    with contextlib.closing(client), contextlib.ExitStack() as stack, flooding(lab, kind):
        for watcher in watchers:
            stack.enter_context(watcher)
        await installation.go_on(client, FLOOD_S, memory.look)
        await asyncio.to_thread(stack.close)
    memory.look()
    answers = [installation.answers, *(watcher.answers for watcher in watchers)]
    said = "; ".join(map(str, answers)) + f"; grown by {memory.grown() >> 20} MiB, {installation.done} actions"
    print(f"\n{kind}: {said}")
    assert [str(one) for one in answers if one.p99_s > SOON_S] == [], said
    assert installation.done > 5, said
    assert memory.grown() <= MEMORY, said
    await until(lambda: memory.left() <= STAYS, within_s=SETTLED_S, seen=memory.left)
    assert all(is_alive(pid) for pid in ours), "a process died"


async def test_a_port_that_is_nearly_full_says_so_and_stays_below_the_limit_of_files(lab: FaultLab) -> None:
    most = await asyncio.to_thread(lab.site.metric, "ironbell_workflow_connections_limit")
    assert 0 < most < FILES
    with flooding(lab, "idle"):
        async with asyncio.timeout(SETTLED_S):
            while (found := await asyncio.to_thread(lab.site.metric, "ironbell_workflow_connections")) < 0.9 * most:
                pass
        assert found <= most
    assert "the gRPC port is nearly full" in lab.site.log.read_text()
