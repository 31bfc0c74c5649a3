"""A namespace whose templates take whatever they can get, against `ironbell up`: everybody else notices nothing.

The attacks are those that once kept every thread busy for hours: no `kubectl apply` was answered, nothing was rendered.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ironbell.api import core
from ironbell.api.tinkerbell import TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import until

ATTACKS = {
    "derive": "{{ range 100000 }}{{ $x := derivePassword 1 `long` `p` `u` `s` }}{{ end }}",
    "bcrypt": "{{ range 100000 }}{{ $x := bcrypt `p` }}{{ end }}",
    "key": "{{ range 100000 }}{{ $x := genPrivateKey `rsa` }}{{ end }}",
    "ca": "{{ range 100000 }}{{ $x := genCA `a` 1 }}{{ end }}",
    "uniq": "{{ $l := until 999 }}{{ range 1000 }}{{ $x := uniq $l }}{{ end }}",
    "regex": "{{ $t := repeat 500000 `ab` }}{{ range 1000 }}{{ $x := regexMatch `(a|b|ab)*c` $t }}{{ end }}",
    "memory": "{{ $x := list }}{{ range 30 }}{{ $x = append $x (until 90000) }}{{ end }}",
}
HONEST = """
name: install
tasks:
- name: os
  worker: {{ .device_1 }}
  actions: [{name: reboot, image: reboot, timeout: 90}]
"""
EACH = 3
"""Workflows of each attack: more together than the controller has workers."""
SOON_S = 1.0
RENDERED_S = 20.0
ENDED_S = 90.0
GROWTH = 64 << 20
RENDERING = "ironbell.controllers.tink.rendering.child"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("heavy-templates"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[Client]:
    async with HttpApi(from_kubeconfig(cluster.kubeconfig)) as api:
        yield Client(api)


class Memory:
    """Resident memory of all processes of a site; those that render are compared with each other."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.before = self._now()
        self.worst: dict[str, int] = {}

    async def watch(self) -> None:
        """Sample until cancelled."""
        while True:
            for name, size in self._now().items():
                self.worst[name] = max(self.worst.get(name, 0), size)
            await asyncio.sleep(0.05)  # how often it measures

    def growth(self) -> dict[str, int]:
        """By how much each kind of process grew at most."""
        return {name: self.worst[name] - size for name, size in self.before.items()}

    def _now(self) -> dict[str, int]:
        found: dict[str, int] = {}
        (up,) = (int(path.name) for path in Path("/proc").glob("[0-9]*") if self._folder in _words(path))
        for pid in _descendants(up):
            name = next((word for word in _words(Path(f"/proc/{pid}")) if word.startswith("ironbell.")), "")
            size = _resident(pid)
            if name and size:
                found[name] = max(found.get(name, 0), size)
        return found


def _words(path: Path) -> list[str]:
    try:
        words = (path / "cmdline").read_text().split("\0")
    except OSError:
        return []
    return words if any(word == "ironbell" or word.startswith("ironbell.") for word in words) else []


def _descendants(pid: int) -> list[int]:
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*"):
            try:
                left += map(int, (task / "children").read_text().split())
            except OSError:
                continue
    return found


def _resident(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS:")), 0)


async def create(client: Client, namespace: str, name: str, text: str, count: int = 1) -> list[str]:
    """A Template, and Workflows of it; their names."""
    await client.create(TEMPLATE, {"metadata": {"name": name, "namespace": namespace}, "spec": {"data": text}})
    names = [f"{name}-{number}" for number in range(count)]
    for workflow in names:
        metadata = {"name": workflow, "namespace": namespace}
        spec = {"templateRef": name, "hardwareMap": {"device_1": "02:00:00:00:00:01"}}
        await client.create(WORKFLOW, {"metadata": metadata, "spec": spec})
    return names


async def first_rendered(client: Client, namespace: str, names: list[str], within_s: float) -> Workflow:
    """The first of the Workflows whose Template was rendered, or was found not to be."""

    async def rendered() -> Workflow | None:
        workflows = [await client.get(WORKFLOW, namespace, name) for name in names]
        return next((one for one in workflows if one.status.template_rendering), None)

    return await until(rendered, within_s=within_s, every_s=0.05)


async def rendered(client: Client, namespace: str, name: str, within_s: float) -> Workflow:
    return await first_rendered(client, namespace, [name], within_s)


@asynccontextmanager
async def beside(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def ended_by(is_over: asyncio.Event, work: Any) -> AsyncIterator[None]:
    """The same for work that ends between two requests: a connection in the middle of one is not closed at once."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        is_over.set()
        await task


async def test_heavy_templates_of_a_namespace_hold_up_nobody_else(cluster: EmbeddedCluster, client: Client) -> None:
    await client.create(core.NAMESPACE, {"metadata": {"name": "heavy"}})
    (first,) = await create(client, "default", "first", HONEST)
    assert (await rendered(client, "default", first, ENDED_S)).status.template_rendering == "successful"
    memory, took, is_over = Memory(cluster.folder / "data"), list[float](), asyncio.Event()

    async def apply() -> None:
        for number in itertools.takewhile(lambda _: not is_over.is_set(), itertools.count()):
            began = time.monotonic()
            body = {"metadata": {"name": "applied", "namespace": "default"}, "data": {"number": str(number)}}
            await client.apply(core.CONFIG_MAP, body, field_manager="kubectl")
            took.append(time.monotonic() - began)

    async with beside(memory.watch()), ended_by(is_over, apply()):
        heavy = [name for attack, text in ATTACKS.items() for name in await create(client, "heavy", attack, text, EACH)]
        for number in range(3):
            (honest,) = await create(client, "default", f"honest-{number}", HONEST)
            workflow = await rendered(client, "default", honest, RENDERED_S)
            assert (workflow.status.template_rendering, workflow.status.state) == ("successful", "PENDING")
        ended = await first_rendered(client, "heavy", heavy, ENDED_S)
    assert sorted(took)[int(len(took) * 0.99)] < SOON_S, f"{len(took)} requests"
    assert max(memory.growth().values()) < GROWTH, memory.growth()
    assert ended.status.state == "FAILED"
    (condition,) = (one for one in ended.status.conditions if one.type == "TemplateRenderedSuccess")
    assert condition.message.startswith(
        f"error rendering template: Template heavy/{ended.spec.template_ref} exceeds a limit of rendering: "
    )
    assert ": make " in condition.message, "the remedy"


async def test_who_renders_has_no_secret_on_its_command_line(cluster: EmbeddedCluster, client: Client) -> None:
    (name,) = await create(client, "default", "secret", HONEST + "# correct-horse\n")
    await rendered(client, "default", name, RENDERED_S)
    lines = [_words(path) for path in Path("/proc").glob("[0-9]*") if RENDERING in _words(path)]
    assert lines
    assert not any("correct-horse" in word for words in lines for word in words)
