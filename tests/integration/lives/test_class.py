"""Clusters of a ClusterClass: upstream's quick start and in-memory templates, changed by their topology alone."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from support.capi.life import Life, Place, Size, rendered
from support.programs.catalog import CLUSTERCTL, build_program
from support.programs.gobuild import CannotBuild
from support.programs.upstream import manifest
from support.skips import missing_program

DOCKER = {
    "DOCKER_POD_CIDRS": "192.168.0.0/16",
    "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
    "DOCKER_SERVICE_DOMAIN": "cluster.local",
}


def by_clusterctl(place: Place, template: str, name: str, size: Size) -> str:
    """What upstream's own `clusterctl generate cluster` makes of a template."""
    try:
        clusterctl = build_program(CLUSTERCTL)
    except CannotBuild as error:
        missing_program(f"clusterctl: {error}")
    done = subprocess.run(
        [
            clusterctl, "generate", "cluster", name, "--from", manifest(template), "--target-namespace",
            place.namespace, "--kubernetes-version", size.version, "--control-plane-machine-count",
            str(size.control_planes), "--worker-machine-count", str(size.workers),
        ],
        env=place.kubectl.environment(CLUSTERCTL_DISABLE_VERSIONCHECK="true", **DOCKER),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_quick_start(place: Place) -> None:
    of_class, one = await begun(place)
    [plane] = await place.items("kubeadmcontrolplanes")
    assert plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["local"]["imageTag"] == "3.6.4-0"
    assert len((await place.items("devclusters"))[0]["status"]["failureDomains"]) == 8
    await one.change(Size(1, 2, "v1.35.0"))
    await one.runs(Size(1, 2, "v1.35.0"))
    await one.has_nodes(Size(1, 2, "v1.35.0"))
    await one.delete(of_class)


async def test_in_memory_templates(place: Place) -> None:
    await place.apply(rendered("in-memory-class.yaml", "", Size(0, 0)))
    of_class, size = await place.left(), Size(1, 1)
    one, two = place.cluster("one"), place.cluster("two")
    template = manifest("cluster-api/cluster-template-in-memory-topology.yaml")
    await place.apply(rendered(template, "one", size, NAMESPACE=place.namespace, **DOCKER))
    await place.apply(by_clusterctl(place, "cluster-api/cluster-template-in-memory-scale.yaml", "two", size))
    await one.runs(size)
    await two.runs(size)
    await place.run("delete", one.what, two.what)
    await place.leaves(of_class)


@pytest.mark.soak
async def test_the_quick_start_grows_and_is_upgraded_by_three_minor_versions(place: Place) -> None:
    of_class, one = await begun(replace(place, within_s=400.0))
    await one.change(Size(3, 10))
    await one.runs(Size(3, 10))
    placed = {machine["spec"]["failureDomain"] for machine in await one.machines(control_planes=True)}
    assert placed == {"fd1", "fd2", "fd3"}
    for version in ("v1.35.2", "v1.36.0", "v1.37.1"):
        await one.change(Size(3, 10, version))
        await one.runs(Size(3, 10, version))
        await one.has_nodes(Size(3, 10, version))
    await one.change(Size(1, 1, version))
    await one.runs(Size(1, 1, version))
    await one.delete(of_class)


async def begun(place: Place) -> tuple[set[str], Life]:
    """Upstream's class, a cluster of it that runs, and what there was before that."""
    await place.apply(rendered(manifest("cluster-api/clusterclass-quick-start.yaml"), "", Size(0, 0)))
    of_class, one = await place.left(), place.cluster("one")
    await place.apply(rendered("quick-start-cluster.yaml", "one", Size(1, 1)))
    await one.runs(Size(1, 1))
    return of_class, one
