"""Who migrates: upstream's managers that run clusters are stopped, and ours are started over the same API; and back.

No Machine is replaced, no rollout begins, nothing is written into a spec. What is under way goes on under the others.
The hosts live on all the while, in a process of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.api.kubeapi import connect
from support.api.realcluster import RealCluster
from support.capi.classes import class_cluster, class_documents
from support.capi.mixtures import (
    BOOTSTRAP,
    COMPONENTS,
    CONTROL_PLANE,
    CONTROL_PLANES,
    CORE,
    INFRASTRUCTURE,
    MACHINES,
    SECRETS,
    Site,
    conditions,
    forget_webhooks,
    is_control_plane,
    settled,
    simulation,
    upstream,
)
from support.capi.processes import KUBEADM, cluster_api
from support.capi.site import cluster_documents
from support.programs.gobuild import CannotBuild
from support.site.components import OnCluster
from support.site.embeddedcluster import EmbeddedCluster
from support.skips import missing_program

pytestmark = pytest.mark.soak

QUIET_S = 12.0
"""Upstream's managers look at everything again within ten seconds or so while something is under way."""
PATHS = (
    *(f"{CORE}/{plural}" for plural in ("clusters", "clusterclasses", "machinedeployments", "machinesets")),
    *(f"{CORE}/{plural}" for plural in ("machines", "machinehealthchecks")),
    *(f"{BOOTSTRAP}/{plural}" for plural in ("kubeadmconfigs", "kubeadmconfigtemplates")),
    *(f"{CONTROL_PLANE}/{plural}" for plural in ("kubeadmcontrolplanes", "kubeadmcontrolplanetemplates")),
    *(f"{INFRASTRUCTURE}/{plural}" for plural in ("devclusters", "devclustertemplates")),
    *(f"{INFRASTRUCTURE}/{plural}" for plural in ("devmachines", "devmachinetemplates")),
    SECRETS,
)
OURS = "ironbell.dev/"
"""What our annotations begin with: records of what was handed over, and digests."""
Kept = dict[tuple[str, str], dict[str, Any]]


@dataclass
class Place:
    """One API whose managers change."""

    folder: Path
    site: Site = field(init=False)
    _times: int = 0

    @contextmanager
    def under(self, whose: str) -> Iterator[Site]:
        """The API with managers of upstream, or with ours."""
        self._times += 1
        without = [f"--without={name}" for name in COMPONENTS] if whose == "upstream" else []
        server = EmbeddedCluster(self.folder / "site", tuple(without))
        with ExitStack() as stack:
            stack.callback(server.stop)
            server.start()
            api = connect("", server.kubeconfig)
            self.site = Site(self.folder, api)
            if whose == "upstream":
                logs = self.folder / f"{whose}-{self._times}"
                self.site.theirs = stack.enter_context(upstream(api, logs))
            else:
                forget_webhooks(api)
            yield self.site


def looked_at(site: Site) -> list[Any]:
    return [(one["metadata"]["name"], one["metadata"]["resourceVersion"]) for path in PATHS for one in site.items(path)]


def kept(site: Site) -> Kept:
    """What must stay as it is, once all is at rest."""
    settled(lambda: looked_at(site), quiet_s=QUIET_S)
    found: Kept = {}
    for path in PATHS:
        for one in site.items(path):
            meta = one["metadata"]
            annotations = {name: value for name, value in meta.get("annotations", {}).items() if OURS not in name}
            owners = [
                (owner["apiVersion"], owner["kind"], owner["uid"], bool(owner.get("controller")))
                for owner in meta.get("ownerReferences", ())
            ]
            found[path.rsplit("/", 1)[1], meta["name"]] = {
                "uid": meta["uid"],
                "generation": meta.get("generation"),
                "labels": meta.get("labels", {}),
                "annotations": annotations,
                "owners": sorted(owners),
                "finalizers": sorted(meta.get("finalizers", ())),
                "spec": one.get("spec"),
                "data": one.get("data"),
                "conditions": conditions(one),
            }
    return found


def differences(before: Kept, after: Kept) -> list[str]:
    """What is not as it was."""
    found = [f"{name} is new" for name in after.keys() - before.keys()]
    found += [f"{name} is gone" for name in before.keys() - after.keys()]
    for name in sorted(before.keys() & after.keys()):
        for part, value in before[name].items():
            now = after[name][part]
            if part == "conditions":
                # what had not been told yet may have become true
                lost = {kind: now.get(kind) for kind, was in value.items() if was == "True" and now.get(kind) != was}
                begun = {kind for kind in ("RollingOut", "ScalingUp", "ScalingDown") if now.get(kind) == "True"}
                if lost or begun:
                    found.append(f"{name}: conditions: {lost} {begun}")
            elif now != value:
                found.append(f"{name}: {part}: {json.dumps(value)} -> {json.dumps(now)}")
    return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_clusters_change_hands_and_back(place: Place) -> None:
    with ExitStack() as lasting:
        try:
            with place.under("upstream") as site:
                lasting.enter_context(simulation(site.api.kubeconfig, place.folder))
                site.apply(cluster_documents(control_planes=3, workers=2, vm="0s", health_checks=True))
                site.apply([*class_documents(), class_cluster(labels={"team": "one"})])
                site.runs(5)
                site.runs(3, cluster="classy")
                first = kept(site)
        except CannotBuild as error:
            missing_program(f"Cluster API managers: {error}")

        with place.under("ours") as site:
            site.runs(5)
            site.runs(3, cluster="classy")
            second = kept(site)
            assert differences(first, second) == []
            works_on(site, "ours")
            third = kept(site)

        with place.under("upstream") as site:
            site.runs(7)
            site.runs(3, "v1.35.0", cluster="classy")
            assert differences(third, kept(site)) == []
            begin_upgrade(site)
            site.reached(lambda: versions(site) >= {"v1.34.0", "v1.35.0"})

        # in the middle of a rollout
        with place.under("ours") as site:
            most = [0]

            def done() -> bool:
                machines = [one for one in site.machines() if is_control_plane(one)]
                most[0] = max(most[0], len(machines))
                assert most[0] <= 4, "more than the surge allows"
                return versions(site) == {"v1.35.0"}

            site.reached(done, within_s=240)
            site.runs(7, "v1.35.0")
            site.gone("classy")
            site.gone()


@pytest.mark.parametrize("kind", [EmbeddedCluster, RealCluster], ids=["embedded", "real"])
def test_clusters_change_hands_on_a_cluster(kind: type[EmbeddedCluster | RealCluster], tmp_path: Path) -> None:
    """The same with `ironbell install` and `ironbell run`: our definitions and webhooks in place of upstream's."""
    words = tuple(f"--without={name}" for name in COMPONENTS)
    server = EmbeddedCluster(tmp_path / "site", words) if kind is EmbeddedCluster else RealCluster(tmp_path / "site")
    with ExitStack() as lasting:
        lasting.callback(server.stop)
        try:
            server.start()
            admin = server.kubeconfig if isinstance(server, EmbeddedCluster) else server.kubeconfig()
            site = Site(tmp_path, connect("", admin))
            with upstream(site.api, tmp_path / "upstream") as site.theirs:
                lasting.enter_context(simulation(admin, tmp_path))
                site.apply(cluster_documents(control_planes=1, workers=2, vm="0s", health_checks=True))
                site.apply([*class_documents(), class_cluster(labels={"team": "one"})])
                site.runs(3)
                site.runs(3, cluster="classy")
                before = kept(site)
        except CannotBuild as error:
            missing_program(f"Cluster API managers: {error}")
        site.theirs = {}
        forget_webhooks(site.api)
        name_services(site)
        ours = OnCluster(tmp_path, admin, site.api)
        lasting.callback(ours.stop)
        with cluster_api(ours, *KUBEADM, force=True):
            site.runs(3)
            assert differences(before, kept(site)) == []
            site.apply([class_cluster(labels={"owner": "ours"}, version="v1.35.0")])
            site.runs(3, "v1.35.0", cluster="classy")
            site.gone("classy")
            site.gone()


def name_services(site: Site) -> None:
    """Let upstream's definitions name Services, as they do on a cluster: addresses in their place are the test's."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for one in site.items(path):
        if "webhook" not in one["spec"].get("conversion", {}):
            continue
        service = {"namespace": "capi-system", "name": "capi-webhook-service", "path": "/convert", "port": 443}
        webhook = {"clientConfig": {"url": None, "service": service}}
        site.patch(f"{path}/{one['metadata']['name']}", {"spec": {"conversion": {"webhook": webhook}}})


def works_on(site: Site, whose: str) -> None:
    """Labels that are taken off templates go from Machines; sizes and versions are followed."""
    site.apply([class_cluster(labels={"owner": whose})])

    def follows() -> bool:
        labels = [one["metadata"]["labels"] for one in site.machines("classy") if not is_control_plane(one)]
        return all(one.get("owner") == whose and "team" not in one for one in labels)

    site.reached(follows)
    site.patch(f"{CORE}/machinedeployments/one-md-0", {"spec": {"replicas": 4}})
    site.runs(7)
    site.apply([class_cluster(labels={"owner": whose}, version="v1.35.0")])
    site.runs(3, "v1.35.0", cluster="classy")


def begin_upgrade(site: Site) -> None:
    upgrade = {"spec": {"version": "v1.35.0"}}
    site.patch(f"{CONTROL_PLANES}/one-control-plane", upgrade)
    site.patch(f"{CORE}/machinedeployments/one-md-0", {"spec": {"template": upgrade}})


def versions(site: Site) -> set[str]:
    return {one["spec"]["version"] for one in site.items(MACHINES) if one["spec"]["clusterName"] == "one"}
