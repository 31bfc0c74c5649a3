"""A site is restored from a backup that is older than one of its machines, while all of them run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.site.embeddedcluster import EmbeddedCluster
from support.site.pivotsites import COMMAND_S, CORE, INFRASTRUCTURE, NAMESPACE, UP_S, Management
from support.waiting import eventually

LABEL = "node.cluster.x-k8s.io/restored"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A site whose machines are another's: they run on while it is restored."""
    site = EmbeddedCluster(tmp_path / "site")
    kubeconfig = site.folder / "data" / "kubeconfig"
    datacentre = EmbeddedCluster(tmp_path / "datacentre", ("--simulate", f"--simulate-for={kubeconfig}"))
    try:
        site.start()
        datacentre.start()
        yield site
    finally:
        datacentre.stop()
        site.stop()


def ironbell(*arguments: object) -> None:
    command = [sys.executable, "-m", "ironbell.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, done.stderr


def uids(management: Management, prefix: str, plural: str) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in management.items(prefix, plural)}


@pytest.mark.soak
def test_nothing_that_runs_is_installed_anew(site: EmbeddedCluster, tmp_path: Path) -> None:
    management, data, file = Management(site.kubeconfig), site.folder / "data", tmp_path / "b.tar"
    management.create()
    ironbell("backup", file, "--data-dir", data)
    machines, hosts = uids(management, CORE, "machines"), uids(management, INFRASTRUCTURE, "devmachines")
    scale = f"{CORE}/namespaces/{NAMESPACE}/machinedeployments/one-md-0/scale"
    assert management.api.patch(scale, {"spec": {"replicas": 2}}).status == 200
    management.runs(3)
    nodes = management.nodes(tmp_path)
    assert len(nodes) == 3

    site.stop()
    ironbell("restore", file, "--data-dir", data, "--force")
    site.start()

    management.runs(2)
    assert uids(management, CORE, "machines") == machines
    assert uids(management, INFRASTRUCTURE, "devmachines") == hosts
    # and it is worked on again: what is wanted now reaches the Machine that is known
    deployment = f"{CORE}/namespaces/{NAMESPACE}/machinedeployments/one-md-0"
    labels = {"spec": {"template": {"metadata": {"labels": {LABEL: "yes"}}}}}
    assert management.api.patch(deployment, labels).status == 200
    eventually(
        lambda: any(LABEL in one["metadata"]["labels"] for one in management.items(CORE, "machines")), within_s=UP_S
    )
    assert management.nodes(tmp_path) == nodes
    assert uids(management, CORE, "machines") == machines
    assert uids(management, INFRASTRUCTURE, "devmachines") == hosts
