"""The demonstration on one server: start a site with a powered-off machine, install it, and show each step.

It does nothing that a user could not do: a lab file, `ironbell up --lab`, five objects applied, and then only watching.
It ends when cloud-init of the installed system has reported, or reports why that cannot happen any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbell.api import core
from ironbell.api.bmc import MACHINE
from ironbell.api.bmc.machine import Machine
from ironbell.api.client import AlreadyExists
from ironbell.api.core import Event
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.base.clock import SystemClock
from ironbell.base.ports import HTTP_PORT
from ironbell.demo import manifests
from ironbell.demo.screen import Screen
from ironbell.demo.site import DemoError, RunningSite, running_site
from ironbell.demo.story import Line, Story
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.manifests import manifests as lab_manifests

NODE = "node-1"
USER = "demo"
REDRAW_S = 0.5


@dataclass(frozen=True)
class Demo:
    """The demonstration to show. `image` is a compressed disk image with its `.sha256` beside it."""

    firmware: str
    osie: Path
    image: Path
    data_dir: Path
    timeout_s: float = 1800.0
    memory_mib: int = 1536
    kind: str = "qemu"
    """Kind of machine, as in a lab file."""

    @property
    def lab_file(self) -> str:
        return (
            f"name: demo\nmachines:\n- name: {NODE}\n  kind: {self.kind}\n  firmware: {self.firmware}\n"
            f"  memory: {self.memory_mib}\n  cpus: 2\n  disks:\n  - size: 4GiB\n"
        )

    def write_lab_file(self) -> Path:
        """Write the lab file to the data folder, which is created if necessary."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        path = self.data_dir / "lab.yaml"
        path.write_text(self.lab_file)
        return path


async def run(demo: Demo, *, stay: bool) -> None:
    """Show the demonstration; with `stay`, keep the machine running until cancelled.

    Raises:
        DemoError: the installation failed, with the reason.
    """
    screen = Screen(SystemClock())
    lab_file = demo.write_lab_file()
    screen.message(f"Starting Ironbell with one powered-off {demo.firmware.upper()} machine (QEMU, real firmware) ...")
    artefacts = {"images": demo.image.parent}
    async with running_site(demo.data_dir, lab_file, osie=demo.osie, artefacts=artefacts) as site:
        screen.line(Line("ready", f"Kubernetes API: export KUBECONFIG={site.kubeconfig}"))
        password = secrets.token_urlsafe(9)
        async with HttpApi(from_kubeconfig(site.kubeconfig)) as api:
            screen.restart()
            await apply(Client(api), demo, site, password=password)
            screen.line(Line("applied", "Secret, Machine, Hardware, Template and Workflow"))
            await follow(api, demo, screen, site)
        _show_times(screen)
        if stay:
            _show_commands(screen, site, password=password)
            screen.message("The machine keeps running. Ctrl-C stops the demonstration and removes everything.")
            await stayed()


async def stayed() -> None:
    """Wait until the user ends the demonstration, which is not a failure."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def apply(client: Client, demo: Demo, site: RunningSite, *, password: str) -> None:
    """Apply all objects of the installation.

    Raises:
        DemoError: they exist already.
    """
    machine = site.lab.machine(NODE)
    documents = lab_manifests(site.lab, {NODE: _text(Path(machine.password_file))})
    checksum = _text(demo.image.with_name(f"{demo.image.name}.sha256")).split()[0]
    base = f"http://{site.lab.gateway}:{HTTP_PORT}"
    installation = manifests.Installation(
        machine=NODE,
        mac=machine.mac,
        image_url=f"{base}/images/{demo.image.name}",
        image_checksum=f"sha256:{checksum}",
        metadata_url=base,
    )
    for document in documents:
        if document["kind"] == "Hardware":
            document["spec"]["userData"] = manifests.user_data(user=USER, password=password)
    kinds = {
        "Secret": core.SECRET,
        "Machine": MACHINE,
        "Hardware": HARDWARE,
        "Template": TEMPLATE,
        "Workflow": WORKFLOW,
    }
    for document in (*documents, manifests.template(), manifests.workflow(installation)):
        await _create(client, kinds[document["kind"]], document)


def _text(path: Path) -> str:
    return path.read_text()


async def _create(client: Client, kind: Any, document: dict[str, Any]) -> None:
    try:
        await client.create(kind, document)
    except AlreadyExists as error:
        raise DemoError(f"{error}; use a new data folder") from error


async def follow(api: HttpApi, demo: Demo, screen: Screen, site: RunningSite) -> None:
    """Show what happens until the machine is installed.

    Raises:
        DemoError: the installation failed, or takes longer than the demonstration allows.
    """
    story = Story(NODE, f"install-{NODE}")
    changed = asyncio.Event()

    def show(lines: list[Line]) -> None:
        for line in lines:
            screen.line(line)
        changed.set()

    events, workflows, machines = Informer(api, core.EVENT), Informer(api, WORKFLOW), Informer(api, MACHINE)
    in_time = True
    events.add_handler(_on_new(story.event, show, Event))
    workflows.add_handler(_on_new(story.workflow_changed, show, Workflow))
    machines.add_handler(_on_new(story.power, show, Machine))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in (events, workflows, machines)]
        try:
            async with asyncio.timeout(demo.timeout_s):
                while not (story.is_installed or story.failure or site.has_exited):
                    changed.clear()
                    if not await _woken(changed):
                        screen.progress(f"waiting for the installed system: {screen.since('', story.progress)}")
        except TimeoutError:
            in_time = False
        finally:
            for task in tasks:
                task.cancel()
    screen.progress("")
    if not in_time:
        raise DemoError(f"not installed after {demo.timeout_s:g} s: {screen.since('')}")
    if story.failure:
        raise DemoError(story.failure)
    if not story.is_installed:
        site.check()


def _on_new(read: Callable[[Any], list[Line]], show: Callable[[list[Line]], None], _kind: type) -> Any:
    return lambda _old, new: show(read(new)) if new is not None else None


async def _woken(changed: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(changed.wait(), REDRAW_S)
    except TimeoutError:
        return False
    return True


def _show_times(screen: Screen) -> None:
    screen.message()
    screen.message(f"Installed and up after {screen.elapsed_s:.0f} s. Duration of the steps:")
    last = 0.0
    for at, line in screen.times:
        if line.label not in {"ready", "applied"} and at - last >= 1.0:
            screen.message(f"  {at - last:6.1f} s  until {line.label}: {line.text[:90]}")
            last = at


def _show_commands(screen: Screen, site: RunningSite, *, password: str) -> None:
    for line_text in (
        "",
        "Commands to try:",
        f"  export KUBECONFIG={site.kubeconfig}",
        "  kubectl get hardware,workflows,machines.bmc,jobs.bmc,tasks.bmc",
        "  kubectl get events --sort-by=.lastTimestamp",
        f"  ironbell logs workflow/install-{NODE}",
        f"  ironbell why workflow/install-{NODE}",
        f"  ironbell lab console --data-dir {site.data_dir} {NODE} --attach    (log in as {USER}, password {password})",
        "",
    ):
        screen.message(line_text)
