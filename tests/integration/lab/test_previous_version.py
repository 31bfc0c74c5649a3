"""A site whose data folder the previous version has written goes on under this one, with its clusters and servers.

`IRONBELL_PREVIOUS` names a checkout of the previous version with its `.venv`; `IRONBELL_PREVIOUS_SERVERS` is the size
of the fleet under churn, 300 if it is not set: 12 take about two minutes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ports import free_ports
from support.site.embeddedcluster import EmbeddedCluster
from support.site.upgradechurn import Churn
from support.site.upgraderecord import CLUSTERS, HARDWARE, MACHINES, WORKFLOWS, Recorder
from support.skips import missing_program
from support.waiting import eventually

pytestmark = pytest.mark.soak

SERVERS = int(os.environ.get("IRONBELL_PREVIOUS_SERVERS", "300"))
SEED = 1
WITHIN_S = 180.0
CONVERGED_S = 180.0 + 6.0 * SERVERS
KEPT = ("boots", "wipes", "disks", "node", "on")
"""What tells of a simulated server that it was neither booted, nor wiped, nor installed again."""


@pytest.fixture(scope="module")
def previous() -> Path:
    folder = os.environ.get("IRONBELL_PREVIOUS", "")
    if not folder:
        missing_program("IRONBELL_PREVIOUS does not name a checkout of the previous version with its .venv")
    checkout = Path(folder).resolve()
    assert (checkout / "src" / "ironbell").is_dir(), f"IRONBELL_PREVIOUS={folder} has no src/ironbell"
    assert (checkout / ".venv" / "bin" / "python").exists(), f"IRONBELL_PREVIOUS={folder} has no .venv: run make setup"
    return checkout


class Site:
    """A site with simulated servers, first of the previous version and then of this one."""

    def __init__(self, folder: Path, servers: int, previous: Path) -> None:
        http, grpc = free_ports(2)
        ports = ("--http-port", str(http), "--grpc-port", str(grpc), "--workflow-http-port", "0")
        self.up = EmbeddedCluster(folder, ("--simulate", str(servers), *ports), checkout=previous)
        self.up.start()
        self.recorder = Recorder(self.up.kubeconfig)
        self.recorder.begin()
        assert eventually(lambda: self._knows_all(servers), within_s=WITHIN_S + servers)

    def _knows_all(self, servers: int) -> bool:
        found = [item for item in self.recorder.all(HARDWARE) if item.get("status", {}).get("attributes")]
        return len(found) == servers

    def upgrade(self) -> None:
        """Start this version on what the previous one has left."""
        self.up.checkout = None
        self.up.start()
        self.recorder.serve()

    def servers(self) -> dict[str, Any]:
        """What the servers really are, by name; a server that was never on is not among them."""
        return {file.stem: json.loads(file.read_bytes()) for file in self._states.glob("*.json")}

    @property
    def _states(self) -> Path:
        return self.up.folder / "data" / "simulation" / "servers"

    def let_leave(self, names: set[str]) -> None:
        """Have servers leave the in-memory OS if they have reported their last action. A real server does so whoever is
        killed; the simulation of the previous version did not store it."""
        for name, state in self.servers().items():
            has_image = any(disk.get("image") for disk in state.get("disks", {}).values())
            if name in names and state.get("runs") == "in-memory OS" and has_image:
                (self._states / f"{name}.json").write_text(json.dumps({**state, "leaves": "kexec"}))

    def is_running(self, machines: int) -> bool:
        phases = [item.get("status", {}).get("phase") for item in self.recorder.all(MACHINES)]
        return phases == ["Running"] * machines

    def check_complete(self) -> None:
        """No object got lost."""

        def complete() -> bool:
            assert self.recorder.lost_and_unknown() == []
            return True

        assert eventually(complete, within_s=WITHIN_S)

    def close(self) -> None:
        self.recorder.end()
        self.up.stop()


@pytest.fixture
def quiet(tmp_path: Path, previous: Path) -> Iterator[Site]:
    site = Site(tmp_path / "quiet", 5, previous)
    yield site
    site.close()


@pytest.fixture
def fleet(tmp_path: Path, previous: Path) -> Iterator[Site]:
    site = Site(tmp_path / "fleet", SERVERS, previous)
    yield site
    site.close()


def test_a_cluster_of_the_previous_version_continues(quiet: Site) -> None:
    churn = Churn(quiet.recorder, servers=5, seed=SEED)
    churn.request_cluster("one", "127.99.9.1", workers=2)
    assert eventually(lambda: quiet.is_running(3), within_s=WITHIN_S)
    assert eventually(lambda: churn.unmet(quiet.servers) == [], within_s=WITHIN_S)
    servers, owners = quiet.servers(), quiet.recorder.owners
    before = {item["metadata"]["uid"]: item["spec"] for item in quiet.recorder.all(MACHINES)}
    workflows = {item["metadata"]["uid"] for item in quiet.recorder.all(WORKFLOWS)}

    quiet.up.stop()
    quiet.upgrade()
    # the new version has seen all servers when it has brought the cluster to a new size
    churn.request_workers("one", 3)
    assert eventually(lambda: quiet.is_running(4) and churn.unmet(quiet.servers) == [], within_s=WITHIN_S)
    after = {item["metadata"]["uid"]: item["spec"] for item in quiet.recorder.all(MACHINES)}
    assert {uid: after.get(uid) for uid in before} == before
    assert {name: quiet.recorder.owners.get(name) for name in owners} == owners
    assert workflows <= {item["metadata"]["uid"] for item in quiet.recorder.all(WORKFLOWS)}
    now = quiet.servers()
    for name in owners:
        assert {what: now[name].get(what) for what in KEPT} == {what: servers[name].get(what) for what in KEPT}, name
    quiet.recorder.check_claims()

    churn.request_deletion("one")
    assert eventually(lambda: churn.unmet(quiet.servers) == [], within_s=WITHIN_S)
    quiet.check_complete()


def test_a_fleet_under_churn_continues(fleet: Site) -> None:
    recorder = fleet.recorder
    churn = Churn(recorder, servers=SERVERS, seed=SEED)
    churn.fill()
    # clusters that are complete, servers that are being installed, and servers that are being wiped
    assert eventually(lambda: _running(recorder) >= SERVERS // 8, within_s=CONVERGED_S)
    churn.begin()
    assert eventually(lambda: _is_in_the_middle(recorder, churn), within_s=CONVERGED_S)
    states, owners, uids = fleet.servers(), recorder.owners, recorder.uids(CLUSTERS)
    workflows = recorder.all(WORKFLOWS)
    recorder.interrupt()
    fleet.up.kill_all()
    fleet.let_leave(_installed(workflows))
    fleet.upgrade()
    made = churn.counts.total()
    assert eventually(lambda: churn.counts.total() > made + SERVERS // 6, within_s=CONVERGED_S)
    churn.end()

    def converged() -> bool:
        assert churn.unmet(fleet.servers)[:12] == []
        return True

    assert eventually(converged, within_s=CONVERGED_S)
    recorder.check_claims()
    fleet.check_complete()
    assert {
        name for name, uid in uids.items() if recorder.uids(CLUSTERS).get(name) == uid
    } == uids.keys() & churn.wanted
    # servers that were nodes when the site was killed, and have their owner still
    nodes = {name for name, state in states.items() if _joined(state)}
    kept = {name for name, owner in recorder.owners.items() if owners.get(name) == owner} & nodes
    now = fleet.servers()
    changed = [f"{name}: {what}" for name in kept for what in KEPT if now[name].get(what) != states[name].get(what)]
    assert changed == []
    print(f"{len(kept)} servers were nodes before and after; {dict(churn.counts)}; {len(recorder.claims)} claims")
    assert kept


def _installed(workflows: list[dict[str, Any]]) -> set[str]:
    """The servers that are or were being installed, and are not being wiped."""
    by_wipe: dict[bool, set[str]] = {True: set(), False: set()}
    for item in workflows:
        by_wipe[item["metadata"]["name"].endswith("-wipe")].add(item["spec"]["hardwareRef"])
    return by_wipe[False] - by_wipe[True]


def _running(recorder: Recorder) -> int:
    return sum(item.get("status", {}).get("phase") == "Running" for item in recorder.all(MACHINES))


def _is_in_the_middle(recorder: Recorder, churn: Churn) -> bool:
    """Whether there have been some changes, and servers are being installed and wiped at this moment."""
    workflows = recorder.all(WORKFLOWS)
    states = {item.get("status", {}).get("state", "") for item in workflows}
    deleted = [item for item in recorder.all(MACHINES) if "deletionTimestamp" in item["metadata"]]
    return churn.counts.total() > SERVERS // 6 and bool(deleted) and bool(states - {"SUCCESS"})


def _joined(state: dict[str, Any]) -> bool:
    return bool((state.get("node") or {}).get("joined"))
