"""Templates go with the last that uses them."""

from __future__ import annotations

from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_SET
from ironbell.controllers.capi.topology.templates import TopologyDeploymentReconciler, TopologyMachineSetReconciler
from ironbell.kube.testing import World, crash_check
from support.capi.topologies import CONFIG_TEMPLATE, DEV_MACHINE_TEMPLATE, NAMESPACE, template, world

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


def new_env() -> World:
    """A MachineDeployment that has changed its infrastructure: the old MachineSet has the old template."""
    env = world(
        {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": {"name": "prod"}, "spec": {}},
        template(CONFIG_TEMPLATE, "config", {}),
        template(DEV_MACHINE_TEMPLATE, "old", {}),
        template(DEV_MACHINE_TEMPLATE, "new", {}),
    )
    env.add(MACHINE_DEPLOYMENT, workers("md", "config", "new"))
    env.add(MACHINE_SET, workers("md-1", "config", "old"))
    env.add(MACHINE_SET, workers("md-2", "config", "new"))
    check = {"clusterName": "prod", "selector": {}}
    env.add(MACHINE_HEALTH_CHECK, {"metadata": {"name": "md", "namespace": NAMESPACE}, "spec": check})
    env.settle(*RECONCILERS)
    return env


def left(env: World) -> tuple[list[str], list[str]]:
    return (
        [item.metadata.name for item in env.list(CONFIG_TEMPLATE)],
        [entry.metadata.name for entry in env.list(DEV_MACHINE_TEMPLATE)],
    )


def remove(env: World, kind: Any, name: str) -> None:
    env.remove(kind, env.require(kind, NAMESPACE, name))
    env.settle(*RECONCILERS)


def test_an_old_machine_set_takes_its_own_template_with_it() -> None:
    env = new_env()
    remove(env, MACHINE_SET, "md-1")
    assert left(env) == (["config"], ["new"])


def test_a_template_in_use_elsewhere_stays() -> None:
    env = new_env()
    remove(env, MACHINE_SET, "md-2")
    assert left(env) == (["config"], ["new", "old"])


def test_the_last_one_takes_everything() -> None:
    env = new_env()
    remove(env, MACHINE_DEPLOYMENT, "md")
    assert left(env) == (["config"], ["new", "old"])
    assert not env.list(MACHINE_HEALTH_CHECK)
    remove(env, MACHINE_SET, "md-1")
    remove(env, MACHINE_SET, "md-2")
    assert left(env) == ([], [])
    assert not env.list(MACHINE_DEPLOYMENT)
    assert not env.list(MACHINE_SET)


def test_it_may_be_killed_anywhere() -> None:
    env = new_env()
    env.remove(MACHINE_SET, env.require(MACHINE_SET, NAMESPACE, "md-1"))
    env.remove(MACHINE_DEPLOYMENT, env.require(MACHINE_DEPLOYMENT, NAMESPACE, "md"))
    crash_check(RECONCILERS, env)


def test_while_the_cluster_is_paused_nothing_is_deleted() -> None:
    env = new_env()
    cluster = env.require(CLUSTER, NAMESPACE, "prod")
    env.change(CLUSTER, cluster, {"spec": {"paused": True}})
    remove(env, MACHINE_SET, "md-1")
    assert left(env) == (["config"], ["new", "old"])
