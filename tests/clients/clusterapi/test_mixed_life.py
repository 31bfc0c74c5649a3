"""The life of clusters under mixtures of upstream's managers and ours: scaled, upgraded, healed, paused, deleted; made
one by one, and from a ClusterClass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.capi.classes import class_cluster, class_documents
from support.capi.mixtures import CONTROL_PLANES, CORE, INFRASTRUCTURE, Site, is_control_plane, mixture
from support.capi.site import cluster_documents
from support.programs.gobuild import CannotBuild
from support.skips import missing_program

pytestmark = pytest.mark.soak

MIXTURES = ("UUU", "UOO", "OUU", "OUO", "OOU")
DEPLOYMENT, CONTROL_PLANE = f"{CORE}/machinedeployments/one-md-0", f"{CONTROL_PLANES}/one-control-plane"
STILL_S = 10.0
FAULT = {"metadata": {"annotations": {"simulation.ironbell.dev/fault": "dies"}}}


@pytest.fixture(params=MIXTURES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    try:
        with mixture(request.param, tmp_path) as made:
            yield made
    except CannotBuild as error:
        missing_program(f"Cluster API managers: {error}")


def scale(site: Site, path: str, replicas: int) -> None:
    site.patch(path, {"spec": {"replicas": replicas}})


def named(site: Site, *, control_plane: bool) -> str:
    """The name of one Machine."""
    return next(str(one["metadata"]["name"]) for one in site.machines() if is_control_plane(one) == control_plane)


def test_a_cluster_lives(site: Site) -> None:
    site.apply(cluster_documents(control_planes=1, workers=2, vm="0s"))
    site.runs(3)
    scale(site, CONTROL_PLANE, 3)
    scale(site, DEPLOYMENT, 3)
    site.runs(6)

    for control_plane in (False, True):
        name = named(site, control_plane=control_plane)
        site.delete(f"{CORE}/machines/{name}")
        site.runs(6, without=[name])

    site.patch(f"{CORE}/clusters/one", {"spec": {"paused": True}})
    site.reached(lambda: all(told(one, "Paused") == "True" for one in owners(site)))
    scale(site, DEPLOYMENT, 1)
    before = {one["metadata"]["uid"] for one in site.machines()}
    time.sleep(STILL_S)  # nothing may happen in this time
    assert {one["metadata"]["uid"] for one in site.machines()} == before
    site.patch(f"{CORE}/clusters/one", {"spec": {"paused": None}})
    site.runs(4)

    upgrade = {"spec": {"version": "v1.35.0"}}
    site.patch(CONTROL_PLANE, upgrade)
    site.patch(DEPLOYMENT, {"spec": {"template": upgrade}})
    site.reached(lambda: site.runs(4, "v1.35.0") is None, within_s=300)

    scale(site, CONTROL_PLANE, 1)
    site.runs(2, "v1.35.0")
    site.gone()


def told(value: dict[str, Any], name: str) -> str:
    found = value.get("status", {}).get("conditions", ())
    return next((one["status"] for one in found if one["type"] == name), "")


def owners(site: Site) -> list[dict[str, Any]]:
    paths = (f"{CORE}/clusters", CONTROL_PLANES, f"{CORE}/machinedeployments", f"{CORE}/machinesets")
    return [*(one for path in paths for one in site.items(path)), *site.machines()]


def test_hosts_that_die_are_replaced(site: Site) -> None:
    documents = [dict(one) for one in cluster_documents(control_planes=3, workers=2, vm="0s", health_checks=True)]
    for one in documents:
        if one["kind"] == "MachineHealthCheck":
            checks = one["spec"]["checks"]["unhealthyNodeConditions"]
            quick = [{**check, "timeoutSeconds": 5} for check in checks]
            one["spec"] = {**one["spec"], "checks": {"unhealthyNodeConditions": quick}}
    site.apply(documents)
    site.runs(5)
    for control_plane in (False, True):
        name = named(site, control_plane=control_plane)
        [host] = [
            one["spec"]["infrastructureRef"]["name"] for one in site.machines() if one["metadata"]["name"] == name
        ]
        site.patch(f"{INFRASTRUCTURE}/devmachines/{host}", FAULT)
        # the node is called unknown 50 seconds after its kubelet's last word
        site.reached(lambda name=name: name not in {one["metadata"]["name"] for one in site.machines()}, within_s=240)
        site.runs(5, without=[name])
    site.gone()


def test_a_cluster_of_a_class_lives(site: Site) -> None:
    site.apply([*class_documents(), class_cluster(labels={"old": "yes"})])
    site.runs(3, cluster="classy")
    assert {one["metadata"]["labels"].get("old") for one in site.machines("classy")} == {None, "yes"}

    site.apply([class_cluster(labels={"new": "yes"}, workers=3)])
    site.runs(4, cluster="classy")

    def follow() -> bool:
        labels = [one["metadata"]["labels"] for one in site.machines("classy") if not is_control_plane(one)]
        return all(one.get("new") == "yes" and "old" not in one for one in labels)

    site.reached(follow)
    before = [one["metadata"]["name"] for one in site.machines("classy")]
    site.apply([class_cluster(workers=1, startup="1s")])
    site.reached(lambda: len(site.machines("classy")) == 2, within_s=240)
    site.runs(2, cluster="classy", without=before)
    site.apply([class_cluster(workers=1, startup="1s", version="v1.35.0")])
    site.runs(2, "v1.35.0", cluster="classy")
    site.gone("classy")
