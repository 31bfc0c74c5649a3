"""Clusters of simulated machines change their management cluster: by `ironbell pivot`, killed on the way, and by
upstream's `clusterctl move`. Two sites, one datacentre."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.embeddedcluster import EmbeddedCluster
from support.gobuild import CannotBuild
from support.pivotsites import COMMAND_S, CORE, NAMESPACE, Management, killed, pivot
from support.real import CLUSTERCTL, component

COPYING, REMOVING = 8, 30
"""Steps that are told before these are in the middle, for a cluster of two machines."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Management, Management]]:
    folder = tmp_path_factory.mktemp("pivot")
    second = EmbeddedCluster(folder / "b")
    first = EmbeddedCluster(folder / "a", ("--simulate", f"--simulate-for={folder / 'b' / 'data' / 'kubeconfig'}"))
    try:
        second.start()
        first.start()
        yield Management(first.kubeconfig), Management(second.kubeconfig)
    finally:
        first.stop()
        second.stop()


@pytest.fixture
def clusterctl(tmp_path: Path) -> list[str | Path]:
    try:
        program = component(CLUSTERCTL)
    except CannotBuild as error:
        pytest.skip(f"no clusterctl: {error}")
    return ["env", f"HOME={tmp_path}", "CLUSTERCTL_DISABLE_VERSIONCHECK=true", program]


def test_killed_and_taken_back_killed_and_finished(sites: tuple[Management, Management], tmp_path: Path) -> None:
    here, there = sites
    here.create()
    machines, nodes = here.machines(), here.nodes(tmp_path)

    listed = msgspec.json.decode(pivot(here, there, "--dry-run", "--output", "json"))["objects"]
    assert {"kind": "Cluster.cluster.x-k8s.io", "namespace": NAMESPACE, "name": "one"} in listed
    assert "are the same API" in pivot(here, here, status=1)

    assert killed(here, there, COPYING)
    assert "give these options" in pivot(here, there, "--cluster", "one", status=1)
    why = subprocess.run(
        [*("python", "-m", "ironbell.cli.main", "why", "cluster/one", "--kubeconfig"), here.kubeconfig],
        capture_output=True, text=True, check=True, timeout=COMMAND_S,
    )  # fmt: skip
    assert "paused for a pivot that is under way" in why.stdout
    assert "taken back: " in pivot(here, there, "--abort")
    here.runs(2)
    assert (there.left(), here.marks()) == ([], [])

    assert killed(here, there, COPYING)
    assert killed(here, there, REMOVING)
    assert "moved" in pivot(here, there)
    there.runs(2)
    assert (here.left(), there.marks()) == ([], [])
    assert (there.machines(), there.nodes(tmp_path)) == (machines, nodes)
    assert "nothing to move" in pivot(here, there)

    # and it is alive: a third machine joins, with a token that is made over there
    scale = f"{CORE}/namespaces/{NAMESPACE}/machinedeployments/one-md-0/scale"
    assert there.api.patch(scale, {"spec": {"replicas": 2}}).status == 200
    there.runs(3)
    assert nodes.items() < there.nodes(tmp_path).items()


def test_clusterctl_moves_it_back(
    sites: tuple[Management, Management], tmp_path: Path, clusterctl: list[str | Path]
) -> None:
    here, there = sites
    there.runs(3)
    machines, nodes = there.machines(), there.nodes(tmp_path)
    move = [*clusterctl, "move", "--kubeconfig", there.kubeconfig, "--to-kubeconfig", here.kubeconfig]
    done = subprocess.run([*move, "-n", NAMESPACE], capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, done.stderr
    here.runs(3)
    assert there.left() == []
    assert (here.machines(), here.nodes(tmp_path)) == (machines, nodes)


@pytest.mark.soak
def test_killed_at_each_step_it_goes_on(sites: tuple[Management, Management], tmp_path: Path) -> None:
    """There and back, each time killed a few steps later."""
    here, there = sites
    if not here.left():
        here.create()
    count = len(here.machines())
    machines, nodes = here.machines(), here.nodes(tmp_path)
    for line in itertools.count(1, 2):
        was_killed = killed(here, there, line)
        if was_killed:
            pivot(here, there)
        there.runs(count)
        assert (here.left(), there.marks()) == ([], [])
        assert (there.machines(), there.nodes(tmp_path)) == (machines, nodes)
        here, there = there, here
        if not was_killed:
            assert line > 2 * COPYING
            break
