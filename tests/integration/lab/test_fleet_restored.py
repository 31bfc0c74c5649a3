"""A site is restored from a backup of before 20 claims and 20 releases, while its (simulated) servers run on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ironbell.contract.servers.restored import RESTORED
from support.fleet.clusters import cluster
from support.ports import free_ports
from support.programs.kubectl import NoKubectl, find_kubectl
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.waiting import eventually

SERVERS, WORKERS, SURGE, ROUNDS = 9, 3, 4, 5
WITHIN_S = 240.0
QUIET_S = 20.0
ENDPOINT = "127.99.8.1"
MACHINES = "machines.cluster.x-k8s.io"


class Site:
    """A strict site with simulated servers."""

    def __init__(self, folder: Path, kubectl: Path) -> None:
        http, grpc = free_ports(2)
        ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
        self.up = EmbeddedCluster(folder, ("--simulate", str(SERVERS), "--identity", "strict", *ports))
        self.kubectl = kubectl

    def run(self, *words: str, text: str = "") -> str:
        command = [str(self.kubectl), "--kubeconfig", str(self.up.kubeconfig), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WITHIN_S)
        return done.stdout if done.returncode == 0 else ""

    def items(self, plural: str) -> list[Any]:
        found = self.run("get", plural, "-A", "-o", "json")
        return json.loads(found)["items"] if found else []

    def scaled(self, workers: int) -> bool:
        self.run("scale", "machinedeployment", "one", "--replicas", str(workers))

        def look() -> bool:
            phases = [one.get("status", {}).get("phase") for one in self.items(MACHINES)]
            taken = [one for one in self.items("hardware") if "ironbell.dev/claimed-by" in _annotations(one)]
            return phases == ["Running"] * (workers + 1) and len(taken) == workers + 1

        return eventually(look, within_s=WITHIN_S)

    def servers(self) -> dict[str, Any]:
        """What the servers really are: power, disks, nodes, how often they were booted and wiped."""
        folder = self.up.folder / "data" / "simulation" / "servers"
        return {file.stem: json.loads(file.read_bytes()) for file in folder.glob("*.json")}

    def command(self, *words: object) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "ironbell.cli.main", *map(str, words)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr


def _annotations(one: Any) -> dict[str, str]:
    found: dict[str, str] = one["metadata"].get("annotations", {})
    return found


@pytest.mark.soak
def test_nothing_is_wiped_or_installed_anew(tmp_path: Path) -> None:
    try:
        site = Site(tmp_path / "site", find_kubectl())
    except NoKubectl as reason:
        missing_program(reason)
    file, data = tmp_path / "b.tar", tmp_path / "site" / "data"
    try:
        site.up.start()
        assert eventually(lambda: len(site.items("hardware")) == SERVERS, within_s=WITHIN_S)
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster("one", ENDPOINT, workers=WORKERS)})
        assert eventually(lambda: site.run("apply", "-f", "-", text=manifest), within_s=WITHIN_S)
        assert site.scaled(WORKERS)
        time.sleep(2)  # a Node of the second in which the backup is made is not older than it
        site.command("backup", file, "--data-dir", data)
        for _ in range(ROUNDS):
            assert site.scaled(WORKERS + SURGE)
            assert site.scaled(WORKERS)
        assert site.scaled(WORKERS + 2)
        before = site.servers()
        assert sum(one.get("wipes", 0) for one in before.values()) >= SURGE * ROUNDS

        site.up.stop()
        site.command("restore", file, "--data-dir", data, "--force")
        site.up.start()
        held = site.items("hardware")
        assert len(held) == SERVERS
        # what people and deployments would do: ask for more, and delete what has no node any more
        site.run("scale", "machinedeployment", "one", "--replicas", str(SERVERS - 1))
        machines = [one["metadata"]["name"] for one in site.items(MACHINES)]
        site.run("delete", MACHINES, machines[-1], "--wait=false")
        time.sleep(QUIET_S)  # nothing may happen in this time

        after = site.servers()
        for name, state in before.items():
            for what in ("wipes", "disks", "on", "node"):
                assert after[name].get(what) == state.get(what), (name, what)
        unsure = [one["metadata"]["name"] for one in site.items("hardware") if RESTORED in _annotations(one)]
        free = {name for name, state in before.items() if not state.get("node")}
        assert free <= set(unsure), "nobody knows of free ones"
    finally:
        site.up.stop()
