"""From the small site that comes first to a real API server, and back: by `ironbell pivot`, killed on the way, and by
upstream's `clusterctl move`. Components on the real one may do only what their roles say."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.capi.processes import KUBEADM, cluster_api, simulation
from support.programs.catalog import CLUSTERCTL, build_program
from support.programs.gobuild import CannotBuild
from support.site.components import OnCluster
from support.site.embeddedcluster import EmbeddedCluster
from support.site.pivotsites import COMMAND_S, NAMESPACE, Management, classed_cluster, killed, pivot
from support.skips import missing_program

pytestmark = pytest.mark.soak
STEPS = (4, 12, 30, 45)
"""How many steps are told before a kill: while it pauses, copies, and removes."""


@pytest.fixture(scope="module")
def sides(on_cluster: OnCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Management, Management]]:
    # clusterctl wants each provider of one side on the other
    embedded = EmbeddedCluster(tmp_path_factory.mktemp("embedded"), ("--without=capt",))
    try:
        embedded.start()
        with cluster_api(on_cluster, *KUBEADM), simulation(on_cluster, embedded.kubeconfig):
            here, there = Management(embedded.kubeconfig), Management(on_cluster.admin)
            yield here, there
            for side in (here, there):
                side.remove()
    finally:
        embedded.stop()


def test_killed_and_finished_there_and_back(sides: tuple[Management, Management], tmp_path: Path) -> None:
    here, there = sides
    here.create()
    here.apply(classed_cluster("two"))
    here.runs(2, "two")
    machines = {name: here.machines(name) for name in ("one", "two")}
    nodes = {name: here.nodes(tmp_path, name) for name in machines}
    for source, target in ((here, there), (there, here), (here, there)):
        for step in STEPS:
            if not killed(source, target, step):
                break
        pivot(source, target)
        for name in nodes:
            target.runs(2, name)
        assert (source.left(), target.marks()) == ([], [])
        assert {name: target.machines(name) for name in machines} == machines
        assert {name: target.nodes(tmp_path, name) for name in nodes} == nodes


def test_clusterctl_moves_there_and_back(sides: tuple[Management, Management], tmp_path: Path) -> None:
    try:
        program = build_program(CLUSTERCTL)
    except CannotBuild as error:
        missing_program(f"clusterctl: {error}")
    here, there = sides
    if here.left():
        pivot(here, there)
    if not there.left():
        there.create()
    machines, nodes = there.machines(), there.nodes(tmp_path)
    count = len(machines)
    for source, target in ((there, here), (here, there)):
        done = subprocess.run(
            ["env", f"HOME={tmp_path}", "CLUSTERCTL_DISABLE_VERSIONCHECK=true", program, "move", "-n", NAMESPACE,
             "--kubeconfig", source.kubeconfig, "--to-kubeconfig", target.kubeconfig],
            capture_output=True, text=True, timeout=COMMAND_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        target.runs(count)
        assert source.left() == []
        assert (target.machines(), target.nodes(tmp_path)) == (machines, nodes)
