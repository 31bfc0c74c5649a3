"""`ironbell up` as a process that tests start, kill in parts or whole, and start again; and what its API shows."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import Connection, from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.waiting import eventually

T = TypeVar("T")

UP = (sys.executable, "-m", "ironbell.cli.main", "up")
KINDS: dict[str, Kind[Any]] = {
    kind.kind: kind for kind in (core.SECRET, MACHINE, JOB, TASK, HARDWARE, TEMPLATE, WORKFLOW)
}
WATCHED: tuple[Kind[Any], ...] = (core.EVENT, HARDWARE, TEMPLATE, WORKFLOW, MACHINE, JOB, TASK)
BOOT, WORKFLOWS = "ironbell.app.wire.boot", "ironbell.app.wire.workflow"
CORE, LAB = "ironbell.app.site.core", "ironbell.lab.process"
READY_S = 60.0


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Site:
    """One data folder with, at most, one `ironbell up`, in the namespace that the caller is in."""

    def __init__(
        self, folder: Path, *options: str, http: str = "127.0.0.1:7080", workflow_port: int = 42114, files: int = 0
    ) -> None:
        self.folder = folder
        self.options = ("--data-dir", str(folder), "--api-port", "6443", *options)
        self.http = f"http://{http}"
        self.workflow_http = f"http://{http.rpartition(':')[0]}:{workflow_port}"
        self.log = folder.with_name(f"{folder.name}.log")
        self._prefix = ("prlimit", f"--nofile={files}:{files}") if files else ()
        self._process: subprocess.Popen[str] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, within_s: float = READY_S) -> None:
        """Start it and wait until it says that it is ready."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *UP, *self.options], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], within_s)
        line = self._process.stdout.readline() if readable else ""
        assert line.startswith("ready "), f"not ready:\n{self.end_of_log()}"

    def wait_serving(self) -> None:
        """Wait until the servers toward machines answer."""
        eventually(self.is_serving, within_s=READY_S, what="servers toward machines")

    def is_serving(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.URLError):
            return self.get("/readyz") == self._fetched(f"{self.workflow_http}/readyz") == b"ok"
        return False

    def get(self, path: str) -> bytes:
        """What the HTTP server toward machines answers."""
        return self._fetched(f"{self.http}{path}")

    def _fetched(self, url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bytes(answer.read())

    def metric(self, name: str, **labels: str) -> float:
        """A counter of the servers toward machines; zero where it is not there yet."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        for line in self._metrics().splitlines():
            series, _, value = line.rpartition(" ")
            family, _, given = series.partition("{")
            if family == name and wanted <= set(given.rstrip("}").split(",")):
                return float(value)
        return 0.0

    def _metrics(self) -> str:
        return "".join(self._fetched(f"{one}/metrics").decode() for one in (self.http, self.workflow_http))

    def stop(self, within_s: float = 10) -> int:
        """SIGTERM, and its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._wait(within_s)

    def kill(self) -> None:
        """kill -9 of the supervisor alone; its children notice by themselves."""
        assert self._process is not None
        self._process.kill()
        self._wait(10)

    def _wait(self, within_s: float) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        status = self._process.wait(within_s)
        self._process.stdout.close()
        self._process = None
        return status

    def child(self, module: str) -> int:
        """The process id of a running child."""

        def look() -> int | None:
            words = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            for pid in map(int, words):
                with contextlib.suppress(OSError):
                    if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") and is_alive(pid):
                        return pid
            return None

        return eventually(look, within_s=READY_S, what=f"process {module}")

    def kill_child(self, module: str) -> None:
        """kill -9, and wait until it is gone."""
        pid = self.child(module)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_alive(pid), within_s=10, what=f"death of {module}")

    def logs(self, workflow: str, *options: str) -> str:
        """What `ironbell logs` prints."""
        command = [*self._cli("logs", f"workflow/{workflow}"), "--no-timestamps", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def follow(self, workflow: str) -> asyncio.subprocess.Process:
        """`ironbell logs -f`, running."""
        command = [*self._cli("logs", f"workflow/{workflow}"), "--no-timestamps", "--follow"]
        return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)

    def _cli(self, *words: str) -> tuple[str, ...]:
        return (*UP[:-1], *words, "--kubeconfig", str(self.kubeconfig))

    def end_of_log(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """End what still runs; every child must be gone afterwards."""
        if self._process is not None:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
            self.stop()
            for pid in map(int, children):
                eventually(lambda pid=pid: not is_alive(pid), within_s=10, what=f"end of process {pid}")  # type: ignore[misc]


@contextmanager
def site(
    folder: Path, *options: str, http: str = "127.0.0.1:7080", serves: bool = True, files: int = 0
) -> Iterator[Site]:
    """A running site; with `serves`, its servers toward machines answer; each of its processes may have so many files
    open, where that is given."""
    made = Site(folder, *options, http=http, files=files)
    try:
        made.start()
        if serves:
            made.wait_serving()
        yield made
    finally:
        made.close()


@dataclass
class Seen:
    """What the API shows, kept up to date over restarts of everything."""

    site: Site
    client: Client
    informers: dict[str, Informer[Any]]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, _old: object, _new: object) -> None:
        self._changed.set()

    def find(self, kind: Kind[Any], name: str) -> Any:
        """An object of namespace `default`; None when there is none."""
        return self.informers[kind.kind].store.get(("default", name))

    def workflow(self, name: str) -> Workflow | None:
        found: Workflow | None = self.find(WORKFLOW, name)
        return found

    def state(self, name: str) -> str:
        found = self.workflow(name)
        return found.status.state if found else ""

    def outcome(self, name: str) -> str:
        """What a Workflow says about how it ended; empty until it has."""
        found = self.workflow(name)
        conditions = found.status.conditions if found else []
        return next((c.message for c in conditions if c.type == "Succeeded" and c.status != "Unknown"), "")

    def action_state(self, name: str, action: str) -> str:
        found = self.workflow(name)
        actions = [a for task in found.status.tasks for a in task.actions] if found else []
        return next((a.state for a in actions if a.name == action), "")

    def allows_pxe(self, name: str) -> bool:
        """Whether any interface of a Hardware may netboot."""
        found = self.find(HARDWARE, name)
        return any(i.netboot is not None and i.netboot.allow_pxe for i in found.spec.interfaces) if found else False

    def events(self, kind: str, name: str) -> list[core.Event]:
        """Events on one object."""
        found = self.informers[core.EVENT.kind].store.list()
        return [e for e in found if (e.involved_object.kind, e.involved_object.name) == (kind, name)]

    def reasons(self, kind: str, name: str) -> set[str]:
        return {event.reason for event in self.events(kind, name)}

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            await self.client.create(KINDS[document["kind"]], document)

    async def until(self, holds: Callable[[], object], *, within_s: float, what: str) -> None:
        """Wait for a condition over what is seen."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pytest.fail(f"{what}: not within {within_s:g} s\n--- log\n{self.site.end_of_log()}")


class SettledApi(HttpApi):
    """Knows when no request is on its way: Python 3.11 forgets to close a connection that is cancelled right before
    its TLS handshake, and warns of it in some later test."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._on_their_way = 0
        self._settled = asyncio.Event()

    async def _sent(self, *words: Any, **more: Any) -> aiohttp.ClientResponse:
        self._on_their_way += 1
        self._settled.clear()
        try:
            return await super()._sent(*words, **more)
        finally:
            self._on_their_way -= 1
            if not self._on_their_way:
                self._settled.set()

    async def settle(self, within_s: float = 10.0) -> None:
        """Wait until every request has its answer's beginning, or the site has had its time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._on_their_way:
                    await self._settled.wait()


@asynccontextmanager
async def seen(running: Site, kinds: Sequence[Kind[Any]] = WATCHED) -> AsyncIterator[Seen]:
    """Watch a site's API."""
    async with SettledApi(from_kubeconfig(running.kubeconfig)) as api:
        watching = Seen(running, Client(api), {kind.kind: Informer(api, kind) for kind in kinds})
        tasks = []
        for informer in watching.informers.values():
            informer.add_handler(watching.changed)
            tasks.append(asyncio.create_task(informer.run()))
        # A task group would wrap the failure of a test in a group of errors.
        try:
            await connected(list(watching.informers.values()))
            yield watching
        finally:
            await api.settle()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def connected(informers: Sequence[Informer[Any]], *, within_s: float = 30) -> None:
    """Wait until all have listed, or the site has had its time."""
    waiting = [asyncio.create_task(informer.wait_synced()) for informer in informers]
    _, late = await asyncio.wait(waiting, timeout=within_s)
    for task in late:
        task.cancel()
