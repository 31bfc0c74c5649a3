"""The lab of `faults`, with a real API server and components in processes of their own instead of `ironbell up`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from support.lab.faults import HTTP, OURS, FaultLab, publish, served
from support.network.forward import forwarded
from support.network.namespaces import lan
from support.site.components import OnCluster, Process
from support.site.up import BOOT, WORKFLOWS, Site
from support.waiting import eventually

GROUPS = {
    "/apis/tinkerbell.org/v1alpha1": ("workflows", "templates", "hardware"),
    "/apis/bmc.tinkerbell.org/v1alpha1": ("jobs", "tasks", "machines"),
}


class ClusterSite(Site):
    """What tests ask of a site, answered by a cluster's processes."""

    def __init__(self, cluster: OnCluster, wire: Process, folder: Path) -> None:
        super().__init__(folder, http=HTTP)
        self._cluster, self._wire = cluster, wire
        self.log = wire.log

    @property
    def kubeconfig(self) -> Path:
        return self._cluster.admin

    def child(self, module: str) -> int:
        return self._wire.child({BOOT: "boot", WORKFLOWS: "workflow"}[module])

    def metric(self, name: str, **labels: str) -> float:
        return self._wire.metric(name, **labels)

    def is_serving(self) -> bool:
        return self._wire.ready() == 200

    def logs(self, workflow: str, *options: str) -> str:
        return self._cluster.logs(workflow)

    def end_of_log(self, lines: int = 30) -> str:
        return "\n".join(self._cluster.end_of_log().splitlines()[-lines:])


@contextmanager
def cluster_lab(folder: Path, cluster: OnCluster) -> Iterator[FaultLab]:
    """All components, serving machines; this thread is inside their namespace."""
    image = publish(folder)
    port = urlsplit(cluster.api.server).port or 0
    with lan(f"{OURS}/24") as network, forwarded(port, network.site), ExitStack() as stack:
        stack.callback(_end, cluster)
        for word in ("tink-controller", "rufio"):
            cluster.run(word)
        wire = cluster.run("wire", *served(folder), "--data-dir", str(folder / "wire"))
        with ExitStack() as machines:
            yield FaultLab(folder, network, ClusterSite(cluster, wire, folder), image, machines)
            _empty(cluster)


def _empty(cluster: OnCluster) -> None:
    """Leave nothing for other tests, while the controllers are there to let go."""
    for prefix, plurals in GROUPS.items():
        for plural in plurals:
            cluster.api.delete(f"{prefix}/namespaces/default/{plural}")
    path = "/apis/tinkerbell.org/v1alpha1/namespaces/default/workflows"
    eventually(lambda: not cluster.api.get(path).json["items"])


def _end(cluster: OnCluster) -> None:
    for process in cluster.processes:
        if process.is_running:
            assert process.stop() == 0, process.end_of_log()
