"""The demonstration of a cluster: powered-off servers become Kubernetes nodes, and one is released with a blank disk.

It does nothing that a user could not do: a lab file, `ironbell up --lab`, the servers' objects and one Cluster's
manifest applied, a DaemonSet applied to the new cluster, a MachineDeployment scaled, and otherwise only watching. It
ends when the disk of a released server is blank, or reports why that is not the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ironbell.api import core
from ironbell.api.bmc import MACHINE
from ironbell.api.bmc.machine import Machine, PowerState
from ironbell.api.client import AlreadyExists
from ironbell.api.cluster.machinedeployment import MACHINE_DEPLOYMENT
from ironbell.api.core import Event
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.app.registry import KINDS
from ironbell.base.clock import SystemClock
from ironbell.base.wording import counted
from ironbell.codec import goyaml
from ironbell.demo import clustermanifests, clusterplan, disks
from ironbell.demo.clustermanifests import ClusterRequest, Document
from ironbell.demo.clusterplan import Plan
from ironbell.demo.clusterstory import READY_LABEL, ClusterStory
from ironbell.demo.newcluster import NewCluster
from ironbell.demo.run import REDRAW_S, stayed
from ironbell.demo.screen import Screen
from ironbell.demo.site import DemoError, RunningSite, running_site
from ironbell.demo.story import Line
from ironbell.kube.cache.informer import Informer
from ironbell.kube.client import Client
from ironbell.kube.transport.connection import from_kubeconfig
from ironbell.kube.transport.http import HttpApi
from ironbell.lab.files import read_state

NAME = "demo"
_SERVED = (kind for kind in KINDS if kind.kind != "Machine" or kind.group == MACHINE.group)
_KINDS: dict[str, Kind[Any]] = {kind.kind: kind for kind in (*_SERVED, core.SECRET, core.CONFIG_MAP)}


@dataclass(frozen=True)
class ClusterDemo:
    """The demonstration to show. `node_image` is a compressed disk image of this Kubernetes release, with its
    manifest."""

    plan: Plan
    release: str
    osie: Path
    node_image: Path
    data_dir: Path
    subnet: str
    timeout_s: float

    def write_lab_file(self) -> Path:
        """Write the lab file to the data folder, which is created if necessary."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        path = self.data_dir / "lab.yaml"
        path.write_text(goyaml.dump(clusterplan.lab_file(self.plan, name=NAME, subnet=self.subnet)))
        return path


async def run(demo: ClusterDemo, *, stay: bool) -> None:
    """Show the demonstration; with `stay`, keep the cluster running until cancelled.

    Raises:
        DemoError: the demonstration failed, with the reason.
    """
    screen = Screen(SystemClock())
    lab_file = demo.write_lab_file()
    screen.message("Starting Ironbell with powered-off virtual servers, each with a Redfish BMC:")
    for line in _kind_lines(demo.plan):
        screen.message(f"  {line}")
    async with running_site(demo.data_dir, lab_file, osie=demo.osie, node_images=demo.node_image.parent) as site:
        screen.line(Line("ready", f"Kubernetes API: export KUBECONFIG={site.kubeconfig}"))
        async with HttpApi(from_kubeconfig(site.kubeconfig)) as api, _showing(demo, site, api, screen) as show:
            try:
                async with asyncio.timeout(demo.timeout_s):
                    await show.go()
            except TimeoutError:
                failed = f"; last failure: {show.story.last_failure}" if show.story.last_failure else ""
                raise DemoError(f"not completed after {demo.timeout_s:g} s: {show.waits_for}{failed}") from None
            show.show_times()
            if stay:
                show.show_commands()
                await stayed()


@dataclass
class Show:
    """One run of the demonstration on a running site."""

    demo: ClusterDemo
    site: RunningSite
    client: Client
    screen: Screen
    story: ClusterStory
    waits_for: str = ""
    """The stage that the demonstration waits for."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: list[asyncio.Task[None]] = field(default_factory=list)
    """Tasks that show what happens; none of them ends before the demonstration does."""
    _stages: list[tuple[str, float]] = field(default_factory=list)

    @property
    def pause_image(self) -> str:
        return clustermanifests.pause_image(self.demo.node_image)

    @property
    def inner_kubeconfig(self) -> Path:
        """The kubeconfig of the new cluster."""
        return self.site.data_dir / f"{NAME}.kubeconfig"

    def show_lines(self, lines: Iterable[Line]) -> None:
        """Show lines, and wake the stage that waits for them."""
        for line in lines:
            self.screen.line(line)
        self.changed.set()

    async def go(self) -> None:
        """Go from powered-off servers to a cluster, and release a server with a blank disk.

        Raises:
            DemoError: the disk is not blank.
        """
        plan = self.demo.plan
        on = [machine.name for machine in self.site.lab.machines if machine.power != "Off"]
        if on:
            raise DemoError(f"servers that should be powered off are on: {', '.join(on)}; use a new data folder")
        self.screen.restart()
        await self._apply()
        for names in (set(plan.kinds) - plan.emulated, plan.emulated):
            if names:
                await self._stage(f"nodes are Ready: {_listed(names)}", partial(self._not_ready, names))
            if workers := names & plan.worker_names:
                await self._stage(f"a pod runs on {_listed(workers)}", partial(self._without_pod, workers))
        await self._scale_down()

    def _not_ready(self, names: AbstractSet[str]) -> AbstractSet[str]:
        return names - self.story.ready

    def _without_pod(self, names: AbstractSet[str]) -> AbstractSet[str]:
        return names - set(self.story.running)

    async def _scale_down(self) -> None:
        """Release one server by scaling down, and read its disk."""
        plan, story, group = self.demo.plan, self.story, self.demo.plan.shrinking
        written = {name: await asyncio.to_thread(disks.bytes_written, self.disk(name)) for name in group.machines}
        for name, size in written.items():
            self.show_lines([Line("disk", f"{size / 1e9:.1f} GB are on its disk", about=story.title(name))])
        deployment = f"{NAME}-{group.role}"
        body = {"spec": {"replicas": group.count - 1}}
        await self.client.merge_patch(MACHINE_DEPLOYMENT, "default", deployment, body=body)
        self.show_lines([Line("scaled", f"MachineDeployment {deployment} to {counted(group.count - 1, 'replica')}")])
        await self._stage("one server is drained, wiped, powered off and released", self._not_released)
        (name,) = story.free
        await self._read(name, written[name])
        rest = set(plan.kinds) - {name}
        await self._stage("all other nodes are Ready", partial(self._not_ready, rest))
        if workers := rest & plan.worker_names:
            await self._stage("a pod runs on each remaining worker", partial(self._without_pod, workers))

    def _not_released(self) -> AbstractSet[str]:
        released = self.story.free & self.story.wiped
        state = read_state(self.site.data_dir)
        done = {name for name in released if state.machine(name).power == "Off" and name not in self.story.nodes}
        return set() if done else {"a server of the group"}

    async def _read(self, name: str, written: int) -> None:
        disk = self.disk(name)
        if not written or not await asyncio.to_thread(disks.is_blank, disk):
            raise DemoError(f"the disk of {name} is not blank: {disk}")
        size = disk.stat().st_size / 1e9
        text = f"read all {size:.1f} GB of its disk: every byte is zero ({written / 1e9:.1f} GB had been written)"
        self.show_lines([Line("disk", text, about=self.story.title(name))])

    def disk(self, name: str) -> Path:
        """The file of a server's disk."""
        return Path(self.site.lab.machine(name).console).with_name("disk0.raw")

    async def _stage(self, title: str, missing: Callable[[], AbstractSet[str]]) -> None:
        """Wait until no server is missing."""
        started = self.screen.elapsed_s
        while waiting := missing():
            for watcher in self.watchers:
                if watcher.done():
                    watcher.result()
            self.waits_for = f"{title} (missing: {', '.join(sorted(waiting))})"
            self.site.check()
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), REDRAW_S)
            except TimeoutError:
                self.screen.progress(self._waiting_text(title, waiting))
        self.screen.progress("")
        took = self.screen.elapsed_s - started
        self._stages.append((title, took))
        self.show_lines([Line("stage", f"{title} (after {took:.1f} s)")])

    def _waiting_text(self, title: str, waiting: AbstractSet[str]) -> str:
        """The stage that is waited for, with the progress of its servers."""
        kinds, story, screen = self.demo.plan.kinds, self.story, self.screen
        progress = {
            name: screen.since(story.title(name), story.progress.get(name, ""))
            for name in sorted(waiting)
            if name in kinds
        }
        return "; ".join((title, *(f"{name}: {text}" for name, text in progress.items() if text)))

    async def _apply(self) -> None:
        """Apply the servers, then the cluster.

        Raises:
            DemoError: they exist already.
        """
        servers = clustermanifests.servers(self.site.lab)
        await self._create(servers)
        self.show_lines(
            [Line("applied", f"Secret, bmc Machine and Hardware of {counted(len(self.site.lab.machines), 'server')}")]
        )
        request = ClusterRequest(
            NAME,
            self.site.lab.machine(self.demo.plan.control_plane.machines[0]).address,
            "",
            self.demo.release,
            self.pause_image,
            {group.role: group.count for group in self.demo.plan.workers},
        )
        documents = clustermanifests.cluster(request)
        manifest = self.site.data_dir / "cluster.yaml"
        manifest.write_text("---\n".join(goyaml.dump(document) for document in documents))
        await self._create(documents)
        self.show_lines([Line("applied", f"Cluster {NAME} with all its objects: {manifest}")])

    async def _create(self, documents: Iterable[Document]) -> None:
        for document in documents:
            try:
                await self.client.create(_KINDS[document["kind"]], document)
            except AlreadyExists as error:
                raise DemoError(f"{error}; use a new data folder") from error

    def show_times(self) -> None:
        """Show the duration of each stage, and of each server's installation."""
        screen = self.screen
        screen.message()
        screen.message(f"Completed in {screen.elapsed_s:.0f} s. Duration of the stages:")
        for title, took in self._stages:
            screen.message(f"  {took:6.1f} s  {title}")
        screen.message("From power-on to a Ready node:")
        for name in self.demo.plan.kinds:
            about = self.story.title(name)
            on = next((at for at, line in screen.times if (line.about, line.value) == (about, PowerState.ON)), None)
            ready = next((at for at, line in screen.times if (line.about, line.label) == (about, READY_LABEL)), None)
            if on is not None and ready is not None:
                screen.message(f"  {ready - on:6.1f} s  {about}")

    def show_commands(self) -> None:
        """Show commands to try while everything keeps running."""
        group = self.demo.plan.shrinking
        for text in (
            "",
            "Commands to try on the management cluster, where Ironbell runs:",
            f"  export KUBECONFIG={self.site.kubeconfig}",
            "  kubectl get machines.cluster.x-k8s.io,tinkerbellmachines,hardware,workflows",
            f"  ironbell cluster describe {NAME}",
            f"  kubectl scale machinedeployment {NAME}-{group.role} --replicas={group.count}",
            "On the new cluster:",
            f"  export KUBECONFIG={self.inner_kubeconfig}",
            "  kubectl get nodes,pods -A -o wide",
            "The console of a server:",
            f"  ironbell lab console --data-dir {self.site.data_dir} {self.demo.plan.control_plane.machines[0]} -f",
            "",
            "Everything keeps running. Ctrl-C stops the demonstration and removes everything.",
        ):
            self.screen.message(text)


@asynccontextmanager
async def _showing(demo: ClusterDemo, site: RunningSite, api: HttpApi, screen: Screen) -> AsyncIterator[Show]:
    """Watch everything while the block runs."""
    story = ClusterStory(demo.plan.kinds)
    show = Show(demo, site, Client(api), screen, story)
    events, workflows = Informer(api, core.EVENT), Informer(api, WORKFLOW)
    machines, hardware = Informer(api, MACHINE), Informer(api, HARDWARE)
    events.add_handler(_on_new(story.event, show.show_lines, Event))
    workflows.add_handler(_on_new(story.workflow_changed, show.show_lines, Workflow))
    workflows.add_handler(lambda old, new: story.workflow_deleted(old) if old is not None and new is None else None)
    machines.add_handler(_on_new(story.power, show.show_lines, Machine))
    hardware.add_handler(_on_new(story.hardware_changed, show.show_lines, Hardware))
    inside = NewCluster(NAME, show.client, show.inner_kubeconfig, show.pause_image, story, show.show_lines)
    runs = (*(informer.run() for informer in (events, workflows, machines, hardware)), inside.follow())
    show.watchers = [asyncio.create_task(watcher) for watcher in runs]
    try:
        yield show
    finally:
        for task in show.watchers:
            task.cancel()
        await asyncio.gather(*show.watchers, return_exceptions=True)


def _on_new(read: Callable[[Any], list[Line]], show: Callable[[list[Line]], None], _kind: type) -> Any:
    return lambda _old, new: show(read(new)) if new is not None else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _kind_lines(plan: Plan) -> list[str]:
    """One line for each kind of server, with what it is."""
    descriptions = {
        "namespace": "Linux namespaces; the firmware is simulated, everything from the in-memory OS on is real",
        "qemu": "QEMU with real firmware",
    }
    kinds = dict.fromkeys(group.kind for group in plan.groups)
    named = {kind: [name for name, its in plan.kinds.items() if its == kind] for kind in kinds}
    lines = [f"{', '.join(names)}: {kind} ({descriptions[kind]})" for kind, names in named.items()]
    if plan.emulated:
        lines.append(f"{_listed(plan.emulated)}: emulated, because there is no KVM; this takes some minutes longer")
    return lines
