"""Sockets that outlive the process that serves them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from ironbell.app.processes.children import Child, ChildSpec
from ironbell.app.processes.kept_sockets import Keeper
from ironbell.app.wire.config import WireConfig
from ironbell.app.wire.sockets import adopted, open_sockets

CHILD = """
import asyncio, os, socket
from ironbell.app.processes.child import read_configuration, report, run_child
from ironbell.app.processes.kept_sockets import hand_up, inherited

def prepare():
    failing = read_configuration(dict)["failing"]
    found = inherited()
    sock = found.get("http")
    if sock is None:
        sock = socket.create_server(("127.0.0.1", 0))
    hand_up({"http": sock})
    report("bound", port=sock.getsockname()[1], inherited=sorted(found), pid=os.getpid())
    if failing:
        raise OSError("no good")
    async def main():
        sock.setblocking(False)
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(sock)
            connection.sendall(str(os.getpid()).encode())
            connection.close()
    return main

if __name__ == "__main__":
    raise SystemExit(run_child("example", prepare))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "keeping_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return "keeping_child"


def started(module: str, *, failing: bool = False) -> tuple[asyncio.Task[None], asyncio.Queue[dict[str, Any]]]:
    reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def on_report(_name: str, report: dict[str, Any]) -> None:
        reports.put_nowait(report)

    child = Child(ChildSpec("example", module, lambda: {"failing": failing}, keeps_sockets=True), on_report)
    return asyncio.create_task(child.run()), reports


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_connection_made_while_the_child_is_dead_is_served_by_its_successor(module: str) -> None:
    task, reports = started(module)
    async with asyncio.timeout(20):
        first = await reports.get()
        os.kill(first["pid"], signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", first["port"]), timeout=20) as waiting:
            os.kill(first["pid"], signal.SIGKILL)
            assert (await reports.get())["event"] == "ended"
            second = await reports.get()
            assert (second["port"], second["inherited"]) == (first["port"], ["http"])
            assert await asyncio.to_thread(waiting.recv, 100) == str(second["pid"]).encode()
        await ended(task)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", first["port"]))


async def test_sockets_that_a_child_failed_with_are_not_handed_on(module: str) -> None:
    task, reports = started(module, failing=True)
    async with asyncio.timeout(20):
        events = [await reports.get() for _ in range(4)]
        await ended(task)
    assert [event["event"] for event in events] == ["bound", "failed", "ended", "bound"]
    assert events[3]["inherited"] == []


def test_sockets_of_another_interface_are_closed() -> None:
    config = WireConfig(folder="", dhcp_mode="off", http_port=0, tftp_port=0, grpc_port=0)
    sockets = open_sockets(config)
    copies = {name: sock.dup() for name, sock in sockets.by_name().items()}
    same = adopted(copies, config)
    assert same is not None
    assert same.ports() == sockets.ports()
    assert "metadata" not in same.ports()
    assert adopted(same.by_name(), WireConfig(folder="", dhcp_mode="off", interface="lo")) is None
    assert same.http.fileno() == -1
    sockets.close()


@pytest.mark.parametrize("names", [b'["http"]', b'["http","grpc","tftp"]', b"rubbish", b"[1,2]"])
def test_what_makes_no_sense_is_closed_and_what_was_kept_stays(names: bytes, tmp_path: Path) -> None:
    keeper = Keeper()
    _, _, theirs = keeper.prepare()
    with theirs, (tmp_path / "no socket").open("w") as file, socket.socket() as sock:
        socket.send_fds(theirs, [b'["http"]'], [sock.fileno()])
        keeper.take()
        before = len(list(Path("/proc/self/fd").iterdir()))
        socket.send_fds(theirs, [names], [sock.fileno(), file.fileno()])
        keeper.take()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        assert list(keeper._kept) == ["http"]
    keeper.close()
