"""Templates go with the last that uses them."""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_SET
from ironbell.controllers.capi.topology.templates import TopologyDeploymentReconciler, TopologyMachineSetReconciler
from ironbell.kube.testing import World, crash_check
from support.topologies import CONFIG_TEMPLATE, DEV_MACHINE_TEMPLATE, NAMESPACE, template, world

RECONCILERS = (TopologyDeploymentReconciler(), TopologyMachineSetReconciler())
LABELS = {
    "cluster.x-k8s.io/cluster-name": "prod",
    "topology.cluster.x-k8s.io/owned": "",
    "cluster.x-k8s.io/deployment-name": "md",
}


def workers(name: str, bootstrap: str, infrastructure: str) -> dict[str, Any]:
    spec = {
        "clusterName": "prod",
        "version": "v1.34.0",
        "bootstrap": {
            "configRef": {"apiGroup": CONFIG_TEMPLATE.group, "kind": CONFIG_TEMPLATE.kind, "name": bootstrap}
        },
        "infrastructureRef": {
            "apiGroup": DEV_MACHINE_TEMPLATE.group,
            "kind": DEV_MACHINE_TEMPLATE.kind,
            "name": infrastructure,
        },
    }
    metadata = {"name": name, "namespace": NAMESPACE, "labels": LABELS}
    return {"metadata": metadata, "spec": {"clusterName": "prod", "selector": {}, "template": {"spec": spec}}}


def made() -> World:
    """A MachineDeployment that has changed its infrastructure: the old MachineSet has the old template."""
    found = world(
        {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": {"name": "prod"}, "spec": {}},
        template(CONFIG_TEMPLATE, "config", {}),
        template(DEV_MACHINE_TEMPLATE, "old", {}),
        template(DEV_MACHINE_TEMPLATE, "new", {}),
    )
    found.add(MACHINE_DEPLOYMENT, workers("md", "config", "new"))
    found.add(MACHINE_SET, workers("md-1", "config", "old"))
    found.add(MACHINE_SET, workers("md-2", "config", "new"))
    check = {"clusterName": "prod", "selector": {}}
    found.add(MACHINE_HEALTH_CHECK, {"metadata": {"name": "md", "namespace": NAMESPACE}, "spec": check})
    found.settle(*RECONCILERS)
    return found


def left(found: World) -> tuple[list[str], list[str]]:
    return (
        [one.metadata.name for one in found.list(CONFIG_TEMPLATE)],
        [one.metadata.name for one in found.list(DEV_MACHINE_TEMPLATE)],
    )


def remove(found: World, kind: Any, name: str) -> None:
    found.remove(kind, found.require(kind, NAMESPACE, name))
    found.settle(*RECONCILERS)


def test_an_old_machine_set_takes_its_own_template_with_it() -> None:
    found = made()
    remove(found, MACHINE_SET, "md-1")
    assert left(found) == (["config"], ["new"])


def test_a_template_in_use_elsewhere_stays() -> None:
    found = made()
    remove(found, MACHINE_SET, "md-2")
    assert left(found) == (["config"], ["new", "old"])


def test_the_last_one_takes_everything() -> None:
    found = made()
    remove(found, MACHINE_DEPLOYMENT, "md")
    assert left(found) == (["config"], ["new", "old"])
    assert not found.list(MACHINE_HEALTH_CHECK)
    remove(found, MACHINE_SET, "md-1")
    remove(found, MACHINE_SET, "md-2")
    assert left(found) == ([], [])
    assert not found.list(MACHINE_DEPLOYMENT)
    assert not found.list(MACHINE_SET)


def test_it_may_be_killed_anywhere() -> None:
    found = made()
    found.remove(MACHINE_SET, found.require(MACHINE_SET, NAMESPACE, "md-1"))
    found.remove(MACHINE_DEPLOYMENT, found.require(MACHINE_DEPLOYMENT, NAMESPACE, "md"))
    crash_check(RECONCILERS, found)


def test_while_the_cluster_is_paused_nothing_goes() -> None:
    found = made()
    cluster = found.require(CLUSTER, NAMESPACE, "prod")
    found.change(CLUSTER, cluster, {"spec": {"paused": True}})
    remove(found, MACHINE_SET, "md-1")
    assert left(found) == (["config"], ["new", "old"])
