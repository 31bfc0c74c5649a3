"""`ironbell run wire`: two processes and what supervises them, whose ports for health differ."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.ports import free_ports
from support.site.nowhere import KUBECONFIG
from support.site.up import is_alive
from support.waiting import eventually

WITHIN_S = 60.0


class Run:
    """One `ironbell run`."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.log, (self.health, _) = folder / "log", free_ports(2)
        (folder / "kubeconfig").write_text(KUBECONFIG)
        self._command = [sys.executable, "-m", "ironbell", "run", *words]
        self._command += ["--kubeconfig", str(folder / "kubeconfig"), "--data-dir", str(folder / "wire")]
        self._command += ["--health-address", f"127.0.0.1:{self.health}", "--dhcp", "off"]
        self.process: subprocess.Popen[bytes]

    def start(self, *more: str) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self._command, *more], stderr=log, stdout=log)

    def children(self) -> dict[str, int]:
        """Process ids by the module that runs, or by `ironbell`."""
        found = {}
        words = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in map(int, words):
            started = [one for one in self._events("process started") if one.get("pid") == pid]
            found |= {one["process"]: pid for one in started if is_alive(pid)}
        return found

    def _events(self, event: str) -> list[dict[str, object]]:
        lines = [line for line in self.log.read_text().splitlines() if f'"event":"{event}"' in line]
        return [json.loads(line) for line in lines]

    def is_healthy(self, number: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health + number}/healthz", timeout=2) as answer:
                return bool(answer.read() == b"ok")
        except (urllib.error.URLError, OSError):
            return False

    def wait(self, count: int = 2) -> None:
        """Until all processes say that they are alive."""
        eventually(lambda: all(map(self.is_healthy, range(count))), within_s=WITHIN_S, what="health")

    def end(self) -> int:
        """SIGTERM, which gives everybody their time; its exit status."""
        self.process.terminate()
        status = self.process.wait(30)
        assert "second stop requested" not in self.log.read_text()
        return status


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path, "wire")
    made.start("--http-port", "0", "--tftp-port", "0", "--grpc-port", "0")
    try:
        made.wait()
        yield made
    finally:
        if made.process.poll() is None:
            assert made.end() == 0, made.log.read_text()


@pytest.mark.parametrize("victim", ["boot", "workflow"])
def test_who_is_killed_is_started_again_and_the_other_goes_on(run: Run, victim: str) -> None:
    before = run.children()
    assert set(before) == {"boot", "workflow"}
    os.kill(before[victim], signal.SIGKILL)
    eventually(
        lambda: run.children().get(victim, before[victim]) != before[victim], within_s=WITHIN_S, what="a successor"
    )
    run.wait()
    after = run.children()
    assert {name for name in before if before[name] != after[name]} == {victim}


def test_when_the_supervisor_is_killed_its_processes_end_and_another_one_can_take_their_ports(
    tmp_path: Path,
) -> None:
    port, other = free_ports(2)
    ports = ("--http-port", str(port), "--grpc-port", str(other), "--tftp-port", "0")
    run = Run(tmp_path, "wire")
    run.start(*ports)
    run.wait()
    gone = run.children().values()
    run.process.kill()
    run.process.wait()
    eventually(lambda: not any(map(is_alive, gone)), within_s=2, what="the end of both")
    run.start(*ports)
    run.wait()
    assert run.end() == 0, run.log.read_text()


def test_controllers_beside_servers_are_a_third_process(tmp_path: Path) -> None:
    run = Run(tmp_path, "wire", "rufio")
    run.start("--http-port", "0", "--tftp-port", "0", "--grpc-port", "0", "--no-leader-elect")
    try:
        eventually(
            lambda: set(run.children()) == {"boot", "workflow", "controllers"}, within_s=WITHIN_S, what="processes"
        )
        run.wait(3)
        if os.geteuid() == 0:
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in run.children().values()} != {0}
    finally:
        assert run.end() == 0, run.log.read_text()


@pytest.mark.parametrize(("words", "option"), [(("wire",), "--grpc-port"), (("tink-server",), "--grpc-port")])
def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        run = Run(tmp_path, *words)
        run.start("--http-port", "0", "--tftp-port", "0", option, str(taken.getsockname()[1]))
        assert run.process.wait(WITHIN_S) == 1
    last = [line for line in run.log.read_text().splitlines() if not line.startswith("{")]
    assert len(last) == 1
    assert last[0].startswith("ironbell: ")
    assert "is in use by" in last[0]
    assert option in last[0]
