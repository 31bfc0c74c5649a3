"""The demonstration of a cluster: powered-off servers become Kubernetes nodes, and one is given back with a blank disk.

It does nothing that a user could not do: a lab file, `ironbell up --lab`, the servers' objects and one Cluster's
manifest applied, a DaemonSet applied to the new cluster, a MachineDeployment scaled, and otherwise only watching. It
ends when a server that was given back has nothing on its disk any more, or says why that is not so.
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
from ironbell.api.bmc.machine import Machine
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
from ironbell.lab.state import read_state

NAME = "demo"
_OURS = (kind for kind in KINDS if kind.kind != "Machine" or kind.group == MACHINE.group)
_KINDS: dict[str, Kind[Any]] = {kind.kind: kind for kind in (*_OURS, core.SECRET, core.CONFIG_MAP)}


@dataclass(frozen=True)
class ClusterDemo:
    """What to show. `node_image` is a compressed disk image of this Kubernetes release, with its manifest beside it."""

    plan: Plan
    release: str
    osie: Path
    node_image: Path
    data_dir: Path
    subnet: str
    timeout_s: float

    def write_lab_file(self) -> Path:
        """Write it into the data folder, which is made if need be."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        path = self.data_dir / "lab.yaml"
        path.write_text(goyaml.dump(clusterplan.lab_file(self.plan, name=NAME, subnet=self.subnet)))
        return path


async def run(demo: ClusterDemo, *, stay: bool) -> None:
    """Show it; with `stay`, keep the cluster running until cancelled.

    Raises:
        DemoError: it failed, with the reason.
    """
    screen = Screen(SystemClock())
    lab_file = demo.write_lab_file()
    screen.note("Starting Ironbell with powered-off virtual servers, each with a BMC that speaks Redfish:")
    for line in _kinds_told(demo.plan):
        screen.note(f"  {line}")
    async with running_site(demo.data_dir, lab_file, osie=demo.osie, node_images=demo.node_image.parent) as site:
        screen.line(Line("ready", f"Kubernetes API: export KUBECONFIG={site.kubeconfig}"))
        async with HttpApi(from_kubeconfig(site.kubeconfig)) as api, _showing(demo, site, api, screen) as show:
            try:
                async with asyncio.timeout(demo.timeout_s):
                    await show.go()
            except TimeoutError:
                failed = f"; what failed last: {show.story.last_failure}" if show.story.last_failure else ""
                raise DemoError(f"not done after {demo.timeout_s:g} s: {show.waits_for}{failed}") from None
            show.tell_times()
            if stay:
                show.look_around()
                await stayed()


@dataclass
class Show:
    """One showing on a running site."""

    demo: ClusterDemo
    site: RunningSite
    client: Client
    screen: Screen
    story: ClusterStory
    waits_for: str = ""
    """What it waits for now."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: list[asyncio.Task[None]] = field(default_factory=list)
    """Who tells the story; none of them ends before the showing does."""
    _stages: list[tuple[str, float]] = field(default_factory=list)

    @property
    def pause_image(self) -> str:
        return clustermanifests.pause_image(self.demo.node_image)

    @property
    def inner_kubeconfig(self) -> Path:
        """The new cluster's."""
        return self.site.data_dir / f"{NAME}.kubeconfig"

    def tell(self, lines: Iterable[Line]) -> None:
        """Show lines, and wake who waits."""
        for line in lines:
            self.screen.line(line)
        self.changed.set()

    async def go(self) -> None:
        """From power-off to a blank disk.

        Raises:
            DemoError: the disk is not blank.
        """
        plan = self.demo.plan
        on = [machine.name for machine in self.site.lab.machines if machine.power != "Off"]
        if on:
            raise DemoError(f"servers that should be off are on: {', '.join(on)}; the data folder is not new")
        self.screen.restart()
        await self._apply()
        for names in (set(plan.kinds) - plan.emulated, plan.emulated):
            if names:
                await self._stage(f"Ready nodes: {_listed(names)}", partial(self._not_ready, names))
            if workers := names & plan.worker_names:
                await self._stage(f"a pod runs on {_listed(workers)}", partial(self._without_pod, workers))
        await self._scale_down()

    def _not_ready(self, names: AbstractSet[str]) -> AbstractSet[str]:
        return names - self.story.ready

    def _without_pod(self, names: AbstractSet[str]) -> AbstractSet[str]:
        return names - set(self.story.running)

    async def _scale_down(self) -> None:
        """Give one server back and read its disk."""
        plan, story, group = self.demo.plan, self.story, self.demo.plan.shrinking
        before = {name: await asyncio.to_thread(disks.bytes_written, self.disk(name)) for name in group.machines}
        for name, written in before.items():
            self.tell([Line("disk", f"{written / 1e9:.1f} GB are on its disk", about=story.about(name))])
        deployment = f"{NAME}-{group.role}"
        body = {"spec": {"replicas": group.count - 1}}
        await self.client.merge_patch(MACHINE_DEPLOYMENT, "default", deployment, body=body)
        self.tell([Line("scaled", f"MachineDeployment {deployment} to {counted(group.count - 1, 'replica')}")])
        await self._stage("one server drained, wiped, off and nobody's", self._not_given_back)
        (name,) = story.free
        await self._read(name, before[name])
        left = set(plan.kinds) - {name}
        await self._stage("all others are Ready nodes", partial(self._not_ready, left))
        if workers := left & plan.worker_names:
            await self._stage("a pod runs on each worker left", partial(self._without_pod, workers))

    def _not_given_back(self) -> AbstractSet[str]:
        given = self.story.free & self.story.wiped
        state = read_state(self.site.data_dir)
        done = {name for name in given if state.machine(name).power == "Off" and name not in self.story.nodes}
        return set() if done else {"a server of the group"}

    async def _read(self, name: str, before: int) -> None:
        disk = self.disk(name)
        if not before or not await asyncio.to_thread(disks.is_blank, disk):
            raise DemoError(f"the disk of {name} is not blank: {disk}")
        size = disk.stat().st_size / 1e9
        text = f"all {size:.1f} GB of its disk read: every byte is zero ({before / 1e9:.1f} GB had been written)"
        self.tell([Line("disk", text, about=self.story.about(name))])

    def disk(self, name: str) -> Path:
        """The file that is a server's disk."""
        return Path(self.site.lab.machine(name).console).with_name("disk0.raw")

    async def _stage(self, what: str, missing: Callable[[], AbstractSet[str]]) -> None:
        """Wait until nothing is missing."""
        started = self.screen.elapsed_s
        while left := missing():
            for watcher in self.watchers:
                if watcher.done():
                    watcher.result()
            self.waits_for = f"{what} (missing: {', '.join(sorted(left))})"
            self.site.check()
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), REDRAW_S)
            except TimeoutError:
                self.screen.progress(self._doing(what, left))
        self.screen.progress("")
        took = self.screen.elapsed_s - started
        self._stages.append((what, took))
        self.tell([Line("stage", f"{what} (after {took:.1f} s)")])

    def _doing(self, what: str, left: AbstractSet[str]) -> str:
        """What is waited for, and how far those are that it needs."""
        far, kinds, story = self.story.progress, self.demo.plan.kinds, self.story
        found = {
            name: self.screen.since(story.about(name), far.get(name, "")) for name in sorted(left) if name in kinds
        }
        return "; ".join((what, *(f"{name}: {how}" for name, how in found.items() if how)))

    async def _apply(self) -> None:
        """Apply the servers, then the cluster.

        Raises:
            DemoError: they are there already.
        """
        servers = clustermanifests.servers(self.site.lab)
        await self._create(servers)
        self.tell(
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
        self.tell([Line("applied", f"Cluster {NAME} with everything that belongs to it: {manifest}")])

    async def _create(self, documents: Iterable[Document]) -> None:
        for document in documents:
            try:
                await self.client.create(_KINDS[document["kind"]], document)
            except AlreadyExists as error:
                raise DemoError(f"{error}; the data folder is not new") from error

    def tell_times(self) -> None:
        """What took how long."""
        screen = self.screen
        screen.note()
        screen.note(f"Done after {screen.elapsed_s:.0f} s. Where the time went:")
        for what, took in self._stages:
            screen.note(f"  {took:6.1f} s  {what}")
        screen.note("From the first power-on to a Ready node:")
        for name in self.demo.plan.kinds:
            about = self.story.about(name)
            on = next((at for at, one in screen.times if one.about == about and one.text.endswith("power on")), None)
            ready = next((at for at, one in screen.times if (one.about, one.label) == (about, READY_LABEL)), None)
            if on is not None and ready is not None:
                screen.note(f"  {ready - on:6.1f} s  {about}")

    def look_around(self) -> None:
        """How to, while everything keeps running."""
        group = self.demo.plan.shrinking
        for text in (
            "",
            "Look around. Where Ironbell runs:",
            f"  export KUBECONFIG={self.site.kubeconfig}",
            "  kubectl get machines.cluster.x-k8s.io,tinkerbellmachines,hardware,workflows",
            f"  ironbell cluster describe {NAME}",
            f"  kubectl scale machinedeployment {NAME}-{group.role} --replicas={group.count}",
            "The cluster that was made:",
            f"  export KUBECONFIG={self.inner_kubeconfig}",
            "  kubectl get nodes,pods -A -o wide",
            "A server's console:",
            f"  ironbell lab console --data-dir {self.site.data_dir} {self.demo.plan.control_plane.machines[0]} -f",
            "",
            "Everything keeps running. Ctrl-C ends it and removes everything.",
        ):
            self.screen.note(text)


@asynccontextmanager
async def _showing(demo: ClusterDemo, site: RunningSite, api: HttpApi, screen: Screen) -> AsyncIterator[Show]:
    """Watch everything for as long as the block lasts."""
    story = ClusterStory(demo.plan.kinds)
    show = Show(demo, site, Client(api), screen, story)
    events, workflows = Informer(api, core.EVENT), Informer(api, WORKFLOW)
    machines, hardware = Informer(api, MACHINE), Informer(api, HARDWARE)
    events.add_handler(_on_new(story.event, show.tell, Event))
    workflows.add_handler(_on_new(story.workflow_changed, show.tell, Workflow))
    workflows.add_handler(lambda old, new: story.workflow_gone(old) if old is not None and new is None else None)
    machines.add_handler(_on_new(story.power, show.tell, Machine))
    hardware.add_handler(_on_new(story.hardware_changed, show.tell, Hardware))
    inside = NewCluster(NAME, show.client, show.inner_kubeconfig, show.pause_image, story, show.tell)
    runs = (*(informer.run() for informer in (events, workflows, machines, hardware)), inside.follow())
    show.watchers = [asyncio.create_task(one) for one in runs]
    try:
        yield show
    finally:
        for task in show.watchers:
            task.cancel()
        await asyncio.gather(*show.watchers, return_exceptions=True)


def _on_new(read: Callable[[Any], list[Line]], tell: Callable[[list[Line]], None], _kind: type) -> Any:
    return lambda _old, new: tell(read(new)) if new is not None else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _kinds_told(plan: Plan) -> list[str]:
    """What each kind is."""
    said = {
        "namespace": "made of Linux namespaces; a stand-in for firmware, everything from the in-memory OS on is real",
        "qemu": "QEMU with real firmware",
    }
    kinds = dict.fromkeys(group.kind for group in plan.groups)
    named = {kind: [name for name, its in plan.kinds.items() if its == kind] for kind in kinds}
    lines = [f"{', '.join(names)}: {kind} ({said[kind]})" for kind, names in named.items()]
    if plan.emulated:
        lines.append(f"{_listed(plan.emulated)}: emulated, as there is no KVM here, which takes some minutes more")
    return lines
