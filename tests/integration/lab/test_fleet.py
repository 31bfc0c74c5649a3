"""`ironbell up --simulate N`: one manifest becomes a cluster on simulated servers, is scaled, and gives them back."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.fleet.clusters import VERSION, cluster
from support.ports import free_ports
from support.programs.kubectl import NoKubectl, find_kubectl
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program
from support.waiting import eventually

SERVERS = 4
WITHIN_S = 90.0
MACHINES = "machines.cluster.x-k8s.io"
BMCS = "machines.bmc.tinkerbell.org"
WIPED = "ironbell.dev/wiped"
ENDPOINT = "127.99.7.1"
OF_USED, OF_FREE = ("InUse", "on"), ("Free", "off")
"""Phase and power."""


@dataclass
class Fleet:
    """A site with simulated servers, and kubectl on it."""

    site: EmbeddedCluster
    kubectl: Path

    @property
    def states(self) -> dict[str, Any]:
        """What the servers are, by name."""
        folder = self.site.folder / "data" / "simulation" / "servers"
        return {file.stem: json.loads(file.read_bytes()) for file in folder.glob("*.json")}

    def run(self, *words: str, text: str = "", kubeconfig: Path | None = None) -> str:
        command = [str(self.kubectl), "--kubeconfig", str(kubeconfig or self.site.kubeconfig), *words]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WITHIN_S)
        return done.stdout if done.returncode == 0 else ""

    def items(self, plural: str, kubeconfig: Path | None = None) -> list[Any]:
        found = self.run("get", plural, "-A", "-o", "json", kubeconfig=kubeconfig)
        return json.loads(found)["items"] if found else []

    def running(self, count: int) -> bool:
        """Whether there are so many Machines, and all run."""
        phases = [one.get("status", {}).get("phase") for one in self.items(MACHINES)]
        return phases == ["Running"] * count

    def shown(self) -> dict[str, tuple[str, str]]:
        """Phase and power of the servers as `kubectl get` shows them."""
        head, *rows = self.run("get", "hardware").splitlines()
        places = [head.index(name) for name in ("PHASE", "POWER")]
        return {row.split()[0]: tuple(row[place:].split()[0] for place in places) for row in rows}  # type: ignore[misc]

    def wiped(self) -> dict[str, Any]:
        """The certificates of servers that nobody has and that are off."""
        off = {one["metadata"]["name"] for one in self.items(BMCS) if one.get("status", {}).get("powerState") == "off"}
        free = [
            one["metadata"]
            for one in self.items("hardware")
            if "ironbell.dev/claimed-by" not in one["metadata"].get("annotations", {})
        ]
        return {
            one["name"]: json.loads(one["annotations"][WIPED])
            for one in free
            if WIPED in one["annotations"] and one["name"] in off
        }


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    try:
        kubectl = find_kubectl()
    except NoKubectl as reason:
        missing_program(reason)
    http, grpc = free_ports(2)
    ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
    site = EmbeddedCluster(tmp_path_factory.mktemp("fleet"), ("--simulate", str(SERVERS), *ports))
    try:
        site.start()
        found = Fleet(site, kubectl)
        assert eventually(lambda: len(found.items("hardware")) == SERVERS, within_s=WITHIN_S)
        yield found
    finally:
        site.stop()


def test_a_cluster_lives_on_simulated_servers(fleet: Fleet, tmp_path: Path) -> None:
    assert eventually(lambda: all(_inventory(one) for one in fleet.items("hardware")), within_s=WITHIN_S)
    assert {one["status"]["attributes"]["outOfBand"]["product"]["vendor"] for one in fleet.items("hardware")} == {
        "Dell Inc.",
        "HPE",
        "Supermicro",
        "Lenovo",
    }
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster("one", ENDPOINT, workers=1)})
    assert eventually(lambda: fleet.run("apply", "-f", "-", text=manifest), within_s=WITHIN_S)
    assert eventually(lambda: fleet.running(2), within_s=WITHIN_S), fleet.site.folder

    kubeconfig = tmp_path / "one.kubeconfig"
    secret = fleet.run("get", "secret", "one-kubeconfig", "-o", "jsonpath={.data.value}")
    kubeconfig.write_bytes(base64.b64decode(secret))
    nodes = {one["metadata"]["name"]: one for one in fleet.items("nodes", kubeconfig)}
    taken = {name for name, state in fleet.states.items() if state.get("node")}
    assert len(nodes) == 2
    assert set(nodes) == taken
    for name, node in nodes.items():
        assert node["spec"]["providerID"] == f"tinkerbell://default/{name}"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    racks = {one["metadata"]["name"]: one["metadata"]["labels"]["rack"] for one in fleet.items("hardware")}

    def all_are_shown() -> bool:
        assert fleet.shown() == {name: OF_USED if name in taken else OF_FREE for name in racks}
        return True

    assert eventually(all_are_shown, within_s=WITHIN_S)
    assert len({racks[name] for name in nodes}) == 2

    fleet.run("scale", "machinedeployment", "one", "--replicas", "3")
    for process in ("boot", "workflow", "core", "simulation"):
        _dies(fleet, process)
    assert eventually(lambda: fleet.running(4), within_s=WITHIN_S)
    fleet.run("scale", "machinedeployment", "one", "--replicas", "1")
    assert eventually(lambda: fleet.running(2) and len(fleet.wiped()) == 2, within_s=WITHIN_S)

    _dies(fleet, "simulation")
    # the cluster's API was in the process that died: it comes back with the server that it was on
    assert eventually(
        lambda: {one["metadata"]["name"] for one in fleet.items("nodes", kubeconfig)} == taken_now(fleet),
        within_s=WITHIN_S,
    )
    assert fleet.running(2)

    fleet.run("delete", "cluster", "one", "--wait=false")
    assert eventually(lambda: len(fleet.wiped()) == SERVERS and not fleet.items("clusters"), within_s=WITHIN_S)
    certificates = fleet.wiped()
    for one in fleet.items("hardware"):
        devices = [disk["device"] for disk in one["spec"]["disks"]]
        certificate = certificates[one["metadata"]["name"]]
        assert certificate["wiped"]
        assert certificate["disks"] == devices
        assert "userData" not in one["spec"]
    for state in fleet.states.values():
        assert not state.get("on")
        assert not state.get("disks")
        assert not state.get("node")


def test_a_held_server_is_not_deleted_before_the_hold_is_removed(fleet: Fleet) -> None:
    name = f"sim-{SERVERS:04}"
    fleet.run("annotate", "hardware", name, "ironbell.dev/hold=fan")
    command = [str(fleet.kubectl), "--kubeconfig", str(fleet.site.kubeconfig), "delete", "hardware", name]
    done = subprocess.run([*command, "--wait=false"], capture_output=True, text=True, timeout=WITHIN_S, check=True)
    assert f'Warning: Hardware "default/{name}" is held (fan): it stays until the hold is removed.' in done.stderr
    _dies(fleet, "core")
    waits_for = "jsonpath={.metadata.annotations.ironbell\\.dev/deletion-waits-for}"
    why = "its hold to be removed (fan): remove annotation ironbell.dev/hold"
    assert eventually(lambda: fleet.run("get", "hardware", name, "-o", waits_for) == why, within_s=WITHIN_S)
    assert fleet.shown()[name] == ("Held", "off")
    assert eventually(lambda: fleet.run("annotate", "hardware", name, "ironbell.dev/hold-"), within_s=WITHIN_S)
    assert eventually(lambda: not fleet.run("get", "hardware", name), within_s=WITHIN_S)


def test_an_endpoint_that_is_not_on_this_machine_is_said_to_be_none(fleet: Fleet) -> None:
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster("far", "192.0.2.77")})
    assert eventually(lambda: fleet.run("apply", "-f", "-", text=manifest), within_s=WITHIN_S)

    def told() -> bool:
        return any(
            "cannot be at 192.0.2.77" in (state.get("node") or {}).get("error", "") for state in fleet.states.values()
        )

    assert eventually(told, within_s=WITHIN_S)
    fleet.run("delete", "cluster", "far", "--wait=false")
    assert eventually(lambda: not fleet.items("clusters"), within_s=WITHIN_S)


def test_a_wrong_file_of_faults_is_told_before_anything_starts(tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("all: {bmc-unreachable: 3}\n")
    command = [sys.executable, "-m", "ironbell.cli.main", "up", "--data-dir", str(tmp_path / "data")]
    command += ["--simulate", "2", "--simulate-faults", str(faults)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode != 0
    assert "ready" not in done.stdout
    assert f"{faults}: Expected `float` <= 1.0 - at `$.all.bmc-unreachable`" in done.stderr


def taken_now(fleet: Fleet) -> set[str]:
    return {name for name, state in fleet.states.items() if (state.get("node") or {}).get("joined")}


def _inventory(hardware: Any) -> bool:
    return "outOfBand" in hardware.get("status", {}).get("attributes", {})


def _dies(fleet: Fleet, process: str) -> None:
    log = (fleet.site.folder / "up.log").read_text().splitlines()
    started = [json.loads(line) for line in log if '"process started"' in line]
    os.kill([one["pid"] for one in started if one["process"] == process][-1], signal.SIGKILL)
