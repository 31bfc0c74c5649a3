"""One site of namespace machines for several tests with real kubeadm: each has servers and a namespace of its own.

A site takes longer to start and to end than a server to install. A test that ends deletes its clusters, and waits for
nothing: its servers are released and wiped while the next test runs on others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ironbell.demo import clusterplan
from ironbell.demo.clusterplan import Group, Plan
from support.kubeadm.cluster import SUBNET, KubeadmSite, NodeArtefacts, kubeadm_site
from support.programs.kubectl import Kubectl

LAB = 86
SPARE_ADDRESS = f"192.168.{LAB}.{{0}}"
"""Addresses from .2 to .9 are no server's."""
PAGE, TEMPLATE, FAILING = ("cp", "w"), ("any",), ("own", "pre", "ref", "img")
"""Roles of the servers of each test; a server is named after its role."""
_COUNTS = {"any": 2}


@dataclass(frozen=True)
class SharedPlant:
    """The site with all its servers."""

    whole: KubeadmSite

    @asynccontextmanager
    async def part(
        self, folder: Path, roles: tuple[str, ...], *, cluster: str, namespace: str = "default"
    ) -> AsyncIterator[KubeadmSite]:
        """A site as if it had the servers of these roles alone; kubectl is in the namespace."""
        site = self.whole.site
        found = tuple(one for one in site.lab.machines if one.name.partition("-")[0] in roles)
        lab = msgspec.structs.replace(site.lab, machines=found)
        kubeconfig = _kubeconfig(site.kubeconfig, namespace, folder)
        kubectl = Kubectl(self.whole.kubectl.binary, kubeconfig, folder)
        if namespace != "default":
            await kubectl.ok("create", "namespace", namespace)
        part = KubeadmSite(
            replace(site, kubeconfig=kubeconfig, lab=lab), self.whole.artefacts, kubectl, folder, cluster=cluster
        )
        try:
            yield part
        finally:
            await kubectl.ok("delete", "clusters.cluster.x-k8s.io", "--all", "--wait=false")


@asynccontextmanager
async def shared_plant(folder: Path, kubectl: Path, artefacts: NodeArtefacts) -> AsyncIterator[SharedPlant]:
    """The site, with every test's servers; nothing is applied yet."""
    groups = [Group(role, "namespace", _COUNTS.get(role, 1)) for role in (*PAGE, *TEMPLATE, *FAILING)]
    lab = clusterplan.lab_file(Plan(groups[0], tuple(groups[1:])), name="shared", subnet=SUBNET.format(LAB))
    async with kubeadm_site(folder, kubectl, artefacts, lab) as site:
        yield SharedPlant(site)


def in_namespace(documents: list[dict[str, Any]], namespace: str) -> list[dict[str, Any]]:
    """The documents, in another namespace than the one that they name, references included."""
    text = yaml.safe_dump_all(documents).replace("namespace: default\n", f"namespace: {namespace}\n")
    return list(yaml.safe_load_all(text))


def _kubeconfig(path: Path, namespace: str, folder: Path) -> Path:
    """The same access, with the namespace that is meant where none is named."""
    settings = yaml.safe_load(path.read_text())
    for context in settings["contexts"]:
        context["context"]["namespace"] = namespace
    made = folder / "kubeconfig"
    made.touch(mode=0o600)
    made.write_text(yaml.safe_dump(settings))
    return made
