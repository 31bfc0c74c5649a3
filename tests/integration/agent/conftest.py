"""Disks, a web server with faults, a way to run actions; a workflow server over an API in memory, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ironbell.agent import messages
from ironbell.agent.actions.__main__ import call
from ironbell.agent.actions.context import Context
from ironbell.api.client import PatchType
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow
from ironbell.base.clock import SystemClock
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.kube.testing.memory import MemoryApi
from ironbell.services.workflow.index import WorkflowTable
from ironbell.services.workflow.liveness import SILENCE_S
from ironbell.services.workflow.port.server import Options, WorkflowServer
from support.skips import missing_permission, require_root
from support.waiting import until


@dataclass
class Step:
    """How one request is answered."""

    status: int = 0
    """0 answers properly."""
    cut_after: int | None = None
    """Close the connection after so many bytes of the body."""
    hang_after: int | None = None
    """Send no more after so many bytes, but keep the connection."""
    ignores_range: bool = False
    etag: str | None = None
    body: bytes | None = None
    """Another body than the server's."""
    says_length: bool = True


@dataclass
class Web:
    """A web server with one file, and what it was asked."""

    body: bytes = b""
    etag: str = '"one"'
    steps: list[Step] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def step(self) -> Step:
        return self.steps.pop(0) if self.steps else Step()


@pytest.fixture
def web() -> Iterator[Web]:
    """The web server; `web.url` is the file's address."""
    state = Web()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            step = state.step()
            asked = self.headers.get("range", "")
            state.ranges.append(asked)
            self.close_connection = True
            if step.status:
                self.send_response(step.status)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            body = state.body if step.body is None else step.body
            etag = state.etag if step.etag is None else step.etag
            start = 0
            match = re.fullmatch(r"bytes=(\d+)-", asked)
            fresh = self.headers.get("if-range", etag) == etag
            if match and fresh and not step.ignores_range:
                start = int(match[1])
                self.send_response(206)
                self.send_header("content-range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            if etag:
                self.send_header("etag", etag)
            if step.says_length:
                self.send_header("content-length", str(len(body) - start))
            self.end_headers()
            end = len(body)
            if step.cut_after is not None:
                end = start + step.cut_after
            if step.hang_after is not None:
                end = start + step.hang_after
            try:
                self.wfile.write(body[start:end])
                self.wfile.flush()
            except OSError:
                return
            if step.hang_after is not None:
                state.released.wait(20)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/disk.img"
    try:
        yield state
    finally:
        state.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Result:
    """What an action did."""

    status: int
    said: list[str]
    notes: list[messages.Message]

    @property
    def failure(self) -> str:
        found = [note.message for note in self.notes if isinstance(note, messages.FailureMessage)]
        return found[-1] if found else ""

    @property
    def after(self) -> messages.AfterMessage | None:
        found = [note for note in self.notes if isinstance(note, messages.AfterMessage)]
        return found[-1] if found else None


@dataclass
class Recorder:
    """A voice that remembers."""

    said: list[str] = field(default_factory=list)
    heard: list[messages.Message] = field(default_factory=list)

    def log(self, text: str) -> None:
        self.said.append(text)

    def send(self, message: messages.Message) -> None:
        self.heard.append(message)


@pytest.fixture
def run_here() -> Callable[..., Result]:
    """Run an action's function in this process, with files allowed as disks."""

    def run(function: Callable[[Context], None], *command: str, **environment: str) -> Result:
        voice = Recorder()
        environment = {"IRONBELL_ALLOW_FILE_DISKS": "1", "DEVICE_WAIT_SECONDS": "0.1", **environment}
        context = Context(environment=environment, output=voice, command=command)
        status = call(function, context)
        return Result(status, voice.said, voice.heard)

    return run


@pytest.fixture
def run_action() -> Callable[..., Result]:
    """Run an action as the agent does: a process of its own."""

    def run(name: str, *command: str, **environment: str) -> Result:
        reading, writing = os.pipe()
        done = subprocess.run(
            [sys.executable, "-m", "ironbell.agent.actions", name, *command],
            env={**os.environ, **environment, messages.MESSAGES_FD_VARIABLE: str(writing)},
            pass_fds=(writing,),
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            found = [note for line in pipe if (note := messages.decode(line)) is not None]
        assert "Traceback" not in done.stderr, done.stderr
        return Result(done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()], found)

    return run


@pytest.fixture
def loop_disk(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Make loop devices of a size in MiB."""
    require_root()
    made: list[str] = []

    def make(size_mib: int) -> str:
        path = tmp_path / f"disk{len(made)}"
        with path.open("wb") as file:
            file.truncate(size_mib << 20)
        done = subprocess.run(
            ["losetup", "--find", "--show", "--partscan", str(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            missing_permission(f"loop devices: {done.stderr.strip()}")
        made.append(done.stdout.strip())
        return made[-1]

    yield make
    for device in made:
        subprocess.run(["losetup", "--detach", device], check=False)


@pytest.fixture
def file_disk(tmp_path: Path) -> Callable[..., Path]:
    """Make a file that stands in for a disk, filled with old data."""

    def make(size: int, fill: bytes = b"old!") -> Path:
        path = tmp_path / "file-disk"
        path.write_bytes((fill * (size // len(fill) + 1))[:size])
        return path

    return make


AGENT = "52:54:00:00:00:01"


def an_action(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"id-{name}",
        "name": name,
        "image": "quay.io/tinkerbell/actions/reboot:latest",
        "timeout": 60,
        "state": "PENDING",
        **fields,
    }


@dataclass
class Bench:
    """The API, the index, and the server while it runs."""

    folder: Path
    api: MemoryApi = field(default_factory=lambda: MemoryApi(clock=SystemClock()))
    index: WorkflowTable = field(default_factory=WorkflowTable)
    directory: HardwareDirectory | None = None
    server: WorkflowServer | None = None
    hold_s: float = 0.3
    finish_s: float = 0.0
    silence_s: float = SILENCE_S
    port: int = 0
    _task: asyncio.Task[None] | None = None

    async def add(self, name: str, *actions: dict[str, Any], **changes: Any) -> None:
        """A rendered Workflow in state PENDING, or as `changes` say; with `annotations` and `spec` too."""
        metadata = {"name": name, "namespace": "default", "annotations": changes.pop("annotations", {})}
        spec = {"templateRef": "t", **changes.pop("spec", {})}
        body = {"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
        await self.api.create(WORKFLOW.collection, "default", msgspec.json.encode(body))
        status = {
            "agentID": AGENT,
            "state": "PENDING",
            "tasks": [{"id": f"task-{name}", "name": "os", "agentID": AGENT, "actions": list(actions)}],
            **changes,
        }
        await self.patch(name, {"status": status}, subresource="status")

    async def patch(self, name: str, change: dict[str, Any], *, subresource: str = "") -> None:
        body = await self.api.patch(
            WORKFLOW.collection,
            "default",
            name,
            msgspec.json.encode(change),
            patch_type=PatchType.MERGE,
            subresource=subresource,
        )
        self.index.upsert(WORKFLOW.decode(body))

    async def workflow(self, name: str) -> Workflow:
        return WORKFLOW.decode(await self.api.get(WORKFLOW.collection, "default", name))

    async def until(self, name: str, condition: Callable[[Workflow], bool]) -> Workflow:
        """The Workflow once the condition holds."""

        async def workflow() -> Workflow:
            found = await self.workflow(name)
            assert condition(found), found.status
            return found

        return await until(workflow, f"Workflow {name}")

    async def start(self) -> None:
        options = Options(
            log_folder=self.folder,
            replica="one",
            port=self.port,
            hold_s=self.hold_s,
            finish_s=self.finish_s,
            directory=self.directory,
            silence_s=self.silence_s,
        )
        self.server = WorkflowServer(self.api, self.index, options)
        await self.server.start()
        self.port = self.server.port
        self._task = asyncio.create_task(self.server.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "logs")
    made.api.serve([WORKFLOW, HARDWARE])
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def action() -> Callable[..., dict[str, Any]]:
    return an_action


@pytest.fixture
def agent_id() -> str:
    return AGENT
