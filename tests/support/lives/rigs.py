"""What random walks run through: `ironbell up` with simulated servers, and a kube-apiserver with our components."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import urllib3

from support.api.kubeapi import connect
from support.api.realcluster import RealCluster
from support.capi.processes import KUBEADM, cluster_api, simulation
from support.fleet.servedimages import served_image
from support.lives.processes import OpenRig
from support.lives.walk import VERSIONS
from support.ports import free_ports
from support.site.components import OnCluster, Process, installed, unchecked_references
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually

_UP: Final = "up"
_KILLED: Final = (_UP, _UP, _UP, "core", "wire", "simulation")
_PROCESSES: Final = {"wire": ("boot", "workflow")}
"""What is killed, where it is several."""
_SITE: Final = "127.0.0.1"
_READY_S: Final = 60.0
_LOOK_S: Final = 1.0
_LEASE: Final = ("--lease-duration=15s", "--renew-deadline=12s", "--retry-period=1s")
"""For a machine that is busy, and whose leaders are killed."""


@dataclass
class EmbeddedRig:
    """`ironbell up --simulate N`."""

    site: EmbeddedCluster

    @property
    def kubeconfig(self) -> Path:
        return self.site.kubeconfig

    @property
    def servers(self) -> Path:
        return self.site.folder / "data" / "simulation" / "servers"

    def start(self) -> None:
        self.site.start()

    def stop(self) -> None:
        self.site.stop()

    def kill(self, dice: random.Random) -> str:
        """Half of the time all of it, else one of its processes, which it starts again itself."""
        chosen = dice.choice(_KILLED)
        if chosen == _UP:
            self.site.kill()
            self.site.start()
            return chosen
        processes = _PROCESSES.get(chosen, (chosen,))
        before = {name: self._started(name) for name in processes}
        for started in before.values():
            os.kill(int(started[-1]["pid"]), signal.SIGKILL)
        eventually(lambda: all(len(self._started(name)) > len(before[name]) for name in processes), within_s=_READY_S)
        eventually(self._answers, within_s=_READY_S)
        return chosen

    def end_of_log(self) -> str:
        return (self.site.folder / "up.log").read_text(errors="replace")[-5000:]

    def _started(self, process: str) -> list[dict[str, Any]]:
        lines = (self.site.folder / "up.log").read_text().splitlines()
        found = [json.loads(line) for line in lines if '"process started"' in line]
        return [one for one in found if one["process"] == process]

    def _answers(self) -> bool:
        try:
            return connect("embedded", self.kubeconfig).get("/readyz").status == 200
        except (OSError, urllib3.exceptions.HTTPError):
            return False


@contextmanager
def embedded(folder: Path, servers: int) -> Iterator[EmbeddedRig]:
    """`ironbell up`, ready."""
    http, grpc = free_ports(2)
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
    site = EmbeddedCluster(folder / "site", ("--simulate", str(servers), *ports))
    try:
        site.start()
        yield EmbeddedRig(site)
    finally:
        site.stop()


@dataclass
class RealRig:
    """Our components beside a kube-apiserver; the servers go on whatever becomes of them."""

    cluster: OnCluster
    servers: Path
    components: Sequence[Process]
    starters: ThreadPoolExecutor
    """Processes end with the thread that has started them."""
    _changing: threading.Lock = field(default_factory=threading.Lock)
    _is_stopped: bool = False

    @property
    def kubeconfig(self) -> Path:
        return self.cluster.admin

    def start(self) -> None:
        with self._changing:
            self._is_stopped = False
            self._start([one for one in self.components if not one.is_running])

    def stop(self) -> None:
        with self._changing:
            self._is_stopped = True
            list(self.starters.map(Process.stop, self.components))

    def kill(self, dice: random.Random) -> str:
        """One of them; it is started again, as its Deployment would."""
        chosen = dice.choice(self.components)
        with self._changing:
            chosen.kill()
            self._start([chosen])
        return chosen.arguments[0]

    def keep(self, until: threading.Event) -> None:
        """Start again what ends by itself, as its Deployment would: on a busy machine a lease can be lost."""
        while not until.wait(_LOOK_S):
            with self._changing:
                ended = [one for one in self.components if not self._is_stopped and not one.is_running]
                with contextlib.suppress(AssertionError):  # it ended again, and is started again
                    self._start(ended)

    def _start(self, components: Sequence[Process]) -> None:
        list(self.starters.map(Process.start, components))
        for one in components:
            one.wait_ready()

    def end_of_log(self) -> str:
        return "\n".join(f"{one.log.name}:\n{one.end_of_log()[-1500:]}" for one in self.components)


@contextmanager
def real(folder: Path, servers: int) -> Iterator[RealRig]:
    """A kube-apiserver of its own, our components, and the servers."""
    cluster = RealCluster(folder / "kubernetes")
    http, grpc = free_ports(2)
    url, machines, images = f"http://{_SITE}:{http}", folder / "simulation", folder / "images"
    images.mkdir(parents=True)
    for version in VERSIONS:
        served_image(images, version)
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--tftp-port", "0")
    folders = ("--data-dir", str(folder / "wire"), "--node-images", str(images))
    wire = ("--interface", "lo", "--dhcp", "off", *ports, *folders)
    options = {"capt": ("--metadata-url", url, "--node-images-url", f"{url}/images")}
    try:
        cluster.start()
        with (
            ThreadPoolExecutor() as starters,
            installed(cluster) as ours,
            cluster_api(ours, *KUBEADM, "capt", lease=_LEASE, options=options) as first,
            unchecked_references(ours),
        ):
            words = (("tink-controller", *_LEASE), ("rufio", *_LEASE), ("wire", *wire))
            more = list(starters.map(lambda each: ours.run(*each), words))
            with simulation(ours, servers=servers, folder=str(machines), site=url):
                rig, ended = RealRig(ours, machines / "servers", [*first, *more], starters), threading.Event()
                keeper = starters.submit(rig.keep, ended)
                try:
                    yield rig
                finally:
                    ended.set()
                    keeper.result()
    finally:
        cluster.stop()


RIGS: Final[Mapping[str, OpenRig]] = MappingProxyType({"embedded": embedded, "real": real})
