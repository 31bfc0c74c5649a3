"""Where clusters live: `ironbell up --simulate`, and a real kube-apiserver with our components beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.api.kubeapi import connect
from support.api.realcluster import RealCluster
from support.capi.processes import KUBEADM, cluster_api, simulation
from support.programs.gobuild import CannotBuild
from support.site.components import installed
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.waiting import eventually

_LAST = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/devmachinepooltemplates"


@dataclass(frozen=True)
class LiveSite:
    """A site that serves Cluster API and simulated machines."""

    name: str
    kubeconfig: Path
    end_of_log: Callable[[], str]


@contextmanager
def embedded(folder: Path) -> Iterator[LiveSite]:
    """`ironbell up --simulate`, real processes and sockets."""
    site = EmbeddedCluster(folder / "site", ("--simulate",))
    try:
        site.start()
        api = connect("embedded", site.kubeconfig)
        eventually(lambda: api.get(_LAST).status == 200)
        log = folder / "site" / "up.log"
        yield LiveSite("embedded", site.kubeconfig, lambda: log.read_text()[-3000:])
    finally:
        site.stop()


@contextmanager
def real(cluster: RealCluster) -> Iterator[LiveSite]:
    """A real kube-apiserver; our components with their own tokens, which ask for nothing that they may not."""
    with installed(cluster) as on_cluster, cluster_api(on_cluster, *KUBEADM), simulation(on_cluster):
        yield LiveSite("real", on_cluster.admin, on_cluster.end_of_log)


@contextmanager
def strict(folder: Path) -> Iterator[LiveSite]:
    """The same on an API server of its own that asks for rights on objects whose owners change, and on the owners."""
    cluster = RealCluster(folder, more_arguments=("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",))
    try:
        cluster.start()
        with real(cluster) as site:
            yield site
    except CannotBuild as error:
        missing_program(f"real Kubernetes: {error}")
    finally:
        cluster.stop()
