"""A site with one QEMU machine, for tests that install for real."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ironbell.api import core
from ironbell.api.bmc import JOB, MACHINE, TASK
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.demo import manifests
from ironbell.demo.artefacts import ensure_image, ensure_osie
from ironbell.demo.run import HTTP_PORT, NODE, Demo
from ironbell.demo.site import RunningSite, running_site
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.description import read
from ironbell.lab.manifests import manifests as lab_manifests
from support.skips import require_program, require_root
from support.waiting import eventually

KINDS = {kind.kind: kind for kind in (core.SECRET, MACHINE, JOB, TASK, HARDWARE, TEMPLATE, WORKFLOW)}

LOOK_AGAIN_S = 0.5


def pids_of(module: str, data_dir: Path) -> list[int]:
    """Processes of one site: those whose parent has its folder on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            owner = (Path("/proc") / parent / "cmdline").read_bytes()
        except OSError:
            continue
        if module.encode() in command and str(data_dir).encode() in owner:
            found.append(int(entry.name))
    return found


def kill(module: str, data_dir: Path) -> None:
    """kill -9 of a site's process, as soon as it runs: it may have been killed a moment ago."""
    (pid,) = eventually(lambda: pids_of(module, data_dir), within_s=30, what=f"process {module}")
    os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Artefacts:
    """What is served to machines."""

    osie: Path
    image: Path


@pytest.fixture(scope="session")
def artefacts() -> Artefacts:
    """In-memory OS and disk image, built once per user."""
    require_root()
    require_program("qemu-system-x86_64", "mmdebstrap")
    return Artefacts(ensure_osie(print), ensure_image(print))


@dataclass
class Installation:
    """A running site and what is seen of it."""

    site: RunningSite
    client: Client
    image: Path
    events: list[core.Event] = field(default_factory=list)
    _workflows: dict[str, Workflow] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def base_url(self) -> str:
        return f"http://{self.site.lab.gateway}:{HTTP_PORT}"

    @property
    def disk(self) -> Path:
        """The machine's first disk, as a file."""
        return Path(self.site.lab.machine(NODE).console).with_name("disk0.raw")

    @property
    def serials(self) -> list[str]:
        """Serial numbers of the machine's disks."""
        return [disk.serial for disk in read(self.site.data_dir / "lab.yaml").machine(NODE).disks]

    @property
    def console(self) -> str:
        return Path(self.site.lab.machine(NODE).console).read_text(errors="replace")

    def workflow(self, name: str) -> Workflow | None:
        return self._workflows.get(name)

    def state(self, name: str) -> str:
        found = self._workflows.get(name)
        return found.status.state if found else ""

    def action_state(self, name: str, action: str) -> str:
        found = self._workflows.get(name)
        actions = [a for task in found.status.tasks for a in task.actions] if found else []
        return next((a.state for a in actions if a.name == action), "")

    def message(self, name: str) -> str:
        """What a Workflow says about its outcome."""
        found = self._workflows.get(name)
        return next((c.message for c in found.status.conditions if c.type == "Succeeded"), "") if found else ""

    def reasons(self) -> set[str]:
        """Reasons of all Events on the machine's Hardware."""
        return {e.reason for e in self.events if e.involved_object.kind == "Hardware"}

    async def apply(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            await self.client.create(KINDS[document["kind"]], document)

    def objects(self) -> list[dict[str, Any]]:
        """Secret, Machine and Hardware of the machine."""
        password = Path(self.site.lab.machine(NODE).password_file).read_text()
        return lab_manifests(self.site.lab, {NODE: password})

    def install(self, **changes: Any) -> list[dict[str, Any]]:
        """The Template and the Workflow of a whole installation."""
        checksum = self.image.with_name(f"{self.image.name}.sha256").read_text().split()[0]
        values: dict[str, Any] = {
            "machine": NODE,
            "mac": self.site.lab.machine(NODE).mac,
            "image_url": f"{self.base_url}/images/{self.image.name}",
            "image_checksum": f"sha256:{checksum}",
            "metadata_url": self.base_url,
        }
        return [manifests.template(), manifests.workflow(manifests.Installation(**(values | changes)))]

    async def until(self, holds: Callable[[], bool], *, within_s: float, what: str) -> None:
        """Wait for a condition over what is seen; fail with the end of console and log."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    self._changed.clear()
                    with contextlib.suppress(TimeoutError):  # files, such as the console, tell nobody
                        await asyncio.wait_for(self._changed.wait(), LOOK_AGAIN_S)
        except TimeoutError:
            log = self.site.log.read_text(errors="replace").splitlines()[-25:]
            console = self.console.splitlines()[-25:]
            pytest.fail(f"{what}: not within {within_s:g} s\n--- console\n" + "\n".join([*console, "--- log", *log]))

    def saw_event(self, _old: core.Event | None, new: core.Event | None) -> None:
        if new is not None:
            self.events.append(new)
        self._changed.set()

    def saw_workflow(self, _old: Workflow | None, new: Workflow | None) -> None:
        if new is not None:
            self._workflows[new.metadata.name] = new
        self._changed.set()


@asynccontextmanager
async def installation(
    folder: Path,
    artefacts: Artefacts,
    *,
    firmware: str,
    memory_mib: int = 1536,
    disks: int = 1,
    bus: str = "virtio",
    packages: Path | None = None,
    kind: str = "qemu",
    options: Sequence[str] = (),
) -> AsyncIterator[Installation]:
    """A site with one powered-off machine; nothing is applied yet. `packages` is a folder to serve under that name."""
    demo = Demo(firmware, artefacts.osie, artefacts.image, folder, memory_mib=memory_mib, kind=kind)
    lab_file = demo.write_lab_file()
    text = demo.lab_file + "  - size: 4GiB\n" * (disks - 1)
    lab_file.write_text(text.replace("  - size: 4GiB\n", f"  - size: 4GiB\n    bus: {bus}\n"))
    served = {"images": artefacts.image.parent} | ({"packages": packages} if packages is not None else {})
    async with (
        running_site(folder, lab_file, osie=artefacts.osie, artefacts=served, options=options) as site,
        HttpApi(from_kubeconfig(site.kubeconfig)) as api,
        asyncio.TaskGroup() as group,
    ):
        seen = Installation(site, Client(api), artefacts.image)
        events, workflows = Informer(api, core.EVENT), Informer(api, WORKFLOW)
        events.add_handler(seen.saw_event)
        workflows.add_handler(seen.saw_workflow)
        tasks = [group.create_task(informer.run()) for informer in (events, workflows)]
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()
