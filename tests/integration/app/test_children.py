"""Supervised processes: configured over a pipe, restarted when they die, gone when their parent is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ironbell.app.processes.children import Child, ChildSpec
from support.waiting import until

CHILD = """
import asyncio, os
import msgspec
from ironbell.app.processes.child import read_configuration, report, run_child

class Configuration(msgspec.Struct):
    greeting: str

def prepare():
    configuration = read_configuration(Configuration)
    async def main():
        report("ready", greeting=configuration.greeting, pid=os.getpid())
        await asyncio.Event().wait()
    return main

if __name__ == "__main__":
    raise SystemExit(run_child("example", prepare))
"""

PARENT = """
import asyncio
from ironbell.app.processes.children import Child, ChildSpec
from ironbell.app.processes.logs import configure_logging

configure_logging(process="parent")

async def main():
    async def on_report(name, report):
        print(report["pid"], flush=True)
    await Child(ChildSpec("example", "child_of_test", lambda: {"greeting": "x"}), on_report).run()

asyncio.run(main())
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "child_of_test.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return "child_of_test"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] != "Z"


async def gone(pid: int) -> None:
    await until(lambda: not alive(pid))


async def test_killed_child_is_started_again_with_its_configuration(module: str) -> None:
    reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def on_report(_name: str, report: dict[str, Any]) -> None:
        reports.put_nowait(report)

    child = Child(ChildSpec("example", module, lambda: {"greeting": "hello"}), on_report)
    task = asyncio.create_task(child.run())
    async with asyncio.timeout(20):
        first = await reports.get()
        assert first["greeting"] == "hello"
        os.kill(first["pid"], signal.SIGKILL)
        assert (await reports.get())["event"] == "ended"
        second = await reports.get()
        assert second["event"] == "ready"
        assert second["pid"] != first["pid"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not alive(second["pid"])


async def test_child_leaves_when_its_parent_is_killed(module: str) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", PARENT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    async with asyncio.timeout(20):
        pid = int(await parent.stdout.readline())
        parent.kill()
        await parent.wait()
        await gone(pid)


def test_process_started_by_hand_says_what_it_is_for(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module], input=b"", capture_output=True, timeout=20, check=False)
    assert done.returncode == 1
    assert b"ironbell up" in done.stderr
    assert b"Traceback" not in done.stderr
