"""Clusters of simulated machines change their management cluster: by `ironbell pivot`, killed on the way, and by
upstream's `clusterctl move`. Two sites, one datacentre."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from support.programs.catalog import CLUSTERCTL, build_program
from support.programs.gobuild import CannotBuild
from support.site.embeddedcluster import EmbeddedCluster
from support.site.pivotsites import (
    COMMAND_S,
    CORE,
    NAMESPACE,
    UP_S,
    Management,
    classed_cluster,
    killed,
    killed_at,
    pivot,
)
from support.skips import missing_program
from support.waiting import eventually

COPYING, REMOVING = 8, 30
"""Steps that are told before these are in the middle, for a cluster of two machines."""
HELD = {"spare": ("fan", ["ironbell.dev/hold"])}
"""What is held on the side that has the server."""
DISCOVERED, DELETING = 4, 45
"""The same for clusterctl and a cluster of three: before it writes, and while it removes the source."""


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
        program = build_program(CLUSTERCTL)
    except CannotBuild as error:
        missing_program(f"clusterctl: {error}")
    return ["env", f"HOME={tmp_path}", "CLUSTERCTL_DISABLE_VERSIONCHECK=true", program]


def test_killed_and_taken_back_killed_and_finished(sites: tuple[Management, Management], tmp_path: Path) -> None:
    here, there = sites
    here.create()
    here.hold("spare")
    machines, nodes = here.machines(), here.nodes(tmp_path)

    listed = msgspec.json.decode(pivot(here, there, "--dry-run", "--output", "json"))["objects"]
    assert {"kind": "Cluster.cluster.x-k8s.io", "namespace": NAMESPACE, "name": "one"} in listed
    assert "are the same API" in pivot(here, here, status=1)

    assert killed(here, there, COPYING)
    assert "use these options" in pivot(here, there, "--cluster", "one", status=1)
    why = subprocess.run(
        [sys.executable, "-m", "ironbell.cli.main", "why", "cluster/one", "--kubeconfig", here.kubeconfig],
        capture_output=True, text=True, check=True, timeout=COMMAND_S,
    )  # fmt: skip
    assert "paused for a pivot that is under way" in why.stdout
    assert "undone: " in pivot(here, there, "--abort")
    here.runs(2)
    assert (there.left(), here.marks()) == ([], [])
    assert (there.held(), here.held()) == ({}, HELD)

    assert killed(here, there, COPYING)
    assert killed(here, there, REMOVING)
    assert "moved" in pivot(here, there)
    there.runs(2)
    assert (here.left(), there.marks()) == ([], [])
    assert (there.machines(), there.nodes(tmp_path)) == (machines, nodes)
    assert (here.held(), there.held()) == ({}, HELD)
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
    if not there.machines():
        there.create(workers=2)
    there.hold("spare")
    there.runs(3)
    machines, nodes = there.machines(), there.nodes(tmp_path)
    move = [*clusterctl, "move", "--kubeconfig", there.kubeconfig, "--to-kubeconfig", here.kubeconfig]
    done = subprocess.run([*move, "-n", NAMESPACE], capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, done.stderr
    here.runs(3)
    assert there.left() == []
    assert (there.held(), here.held()) == ({}, HELD)
    assert (here.machines(), here.nodes(tmp_path)) == (machines, nodes)


def test_a_clusterctl_move_that_was_killed_is_finished(
    sites: tuple[Management, Management], tmp_path: Path, clusterctl: list[str | Path]
) -> None:
    half_moved(sites, tmp_path, clusterctl, [DELETING])


@pytest.mark.soak
def test_a_clusterctl_move_killed_at_each_step_is_finished(
    sites: tuple[Management, Management], tmp_path: Path, clusterctl: list[str | Path]
) -> None:
    half_moved(sites, tmp_path, clusterctl, range(DISCOVERED, 100, 5))


def half_moved(
    sites: tuple[Management, Management], folder: Path, clusterctl: list[str | Path], lines: Iterable[int]
) -> None:
    """There and back, each time killed after another number of lines; `ironbell pivot --adopt` does the rest."""
    here, there = sites
    if there.machines():
        here, there = there, here
    if not here.machines():
        here.create()
    here.hold("spare")
    machines, nodes = here.machines(), here.nodes(folder)
    count = len(machines)
    for line in lines:
        move = [*clusterctl, "move", "-v", "1", "--kubeconfig", here.kubeconfig, "--to-kubeconfig", there.kubeconfig]
        was_killed = killed_at(line, [*move, "-n", NAMESPACE])
        if was_killed and "still paused on the target: Cluster" in pivot(here, there, "--adopt"):
            there.set_free()  # the last that clusterctl had to do
        there.runs(count)
        assert (here.left(), there.marks()) == ([], [])
        assert (here.held(), there.held()) == ({}, HELD)
        assert (there.machines(), there.nodes(folder)) == (machines, nodes)
        here, there = there, here
        if not was_killed:
            assert line > DELETING
            return


@pytest.mark.soak
def test_a_cluster_of_a_class_goes_with_it(sites: tuple[Management, Management], tmp_path: Path) -> None:
    """Its topology goes on where it was: the same objects, and fields that it takes away are gone."""
    here, there = sites
    here.apply(classed_cluster("two"))
    here.runs(2, "two")
    machines, nodes = here.machines("two"), here.nodes(tmp_path, "two")
    assert "moved" in pivot(here, there)
    there.runs(2, "two")
    assert here.left() == []
    assert (there.machines("two"), there.nodes(tmp_path, "two")) == (machines, nodes)
    path = f"{CORE}/namespaces/{NAMESPACE}/clusters/two"
    change = {"metadata": {"labels": {"gone": "yes"}}, "replicas": 2, "class": "worker", "name": "md-0"}
    for metadata in (change["metadata"], None):
        worker = {**change, "metadata": metadata} if metadata else {**change}
        if metadata is None:
            del worker["metadata"]
        patch = {"spec": {"topology": {"workers": {"machineDeployments": [worker]}}}}
        assert there.api.patch(path, patch).status == 200
        eventually(lambda wanted=bool(metadata): has_label(there, "gone") is wanted, within_s=UP_S)
    there.runs(3, "two")
    assert nodes.items() < there.nodes(tmp_path, "two").items()


def has_label(site: Management, name: str) -> bool:
    (deployment,) = [one for one in site.items(CORE, "machinedeployments") if one["spec"]["clusterName"] == "two"]
    return name in deployment["spec"]["template"]["metadata"].get("labels", {})


@pytest.mark.soak
def test_killed_at_each_step_it_goes_on(sites: tuple[Management, Management], tmp_path: Path) -> None:
    """There and back, each time killed a few steps later."""
    here, there = sites
    if there.machines():
        here, there = there, here
    if not here.machines():
        here.create()
    machines, nodes = here.machines(), here.nodes(tmp_path)
    count = len(machines)
    for line in itertools.count(1, 4):
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
