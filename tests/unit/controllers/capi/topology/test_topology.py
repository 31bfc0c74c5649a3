"""A topology from its first object to its last: made, changed, upgraded, and what keeps it from that."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from ironbell.api.meta import to_builtin
from ironbell.kube.finalizers import has_finalizer
from ironbell.kube.testing import World, crash_check
from support.capi.topologies import (
    CLASSES,
    CONFIG_TEMPLATE,
    DEV_CLUSTER,
    DEV_MACHINE_TEMPLATE,
    NAMESPACE,
    PLANE,
    TOPOLOGY,
    deployments,
    plane,
    reported,
    run_control_plane,
    run_workers,
    settle,
    small_class,
    small_cluster,
    small_world,
    world,
)

HOLD = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
STEP = "topology.internal.cluster.x-k8s.io/upgrade-step"
SIZE: dict[str, Any] = {
    "variables": [{"name": "size", "required": True, "schema": {"openAPIV3Schema": {"type": "integer", "default": 1}}}],
    "patches": [
        {
            "name": "size",
            "definitions": [
                {
                    "selector": {
                        "apiVersion": DEV_MACHINE_TEMPLATE.api_version,
                        "kind": DEV_MACHINE_TEMPLATE.kind,
                        "matchResources": {"controlPlane": True, "machineDeploymentClass": {"names": ["*"]}},
                    },
                    "jsonPatches": [
                        {"op": "replace", "path": "/spec/template/spec/size", "valueFrom": {"variable": "size"}}
                    ],
                }
            ],
        }
    ],
}
CHECKS = {"checks": {"nodeStartupTimeoutSeconds": 60}}


def own_templates(env: World) -> dict[str, Any]:
    """Machine templates that belong to the cluster, by name, with their size."""
    return {
        template.metadata.name: template.body["spec"]["template"]["spec"]["size"]
        for template in env.list(DEV_MACHINE_TEMPLATE)
        if "topology.cluster.x-k8s.io/owned" in template.metadata.labels
    }


def change(env: World, **topology: Any) -> None:
    [cluster] = env.list(CLUSTER)
    env.change(CLUSTER, cluster, {"spec": {"topology": topology}})


def workers(*names: str, **of: dict[str, Any]) -> dict[str, Any]:
    obj_ = [{"class": "worker", "name": name, "replicas": 2, **of.get(name.replace("-", "_"), {})} for name in names]
    return {"machineDeployments": obj_}


def run_everything(env: World) -> None:
    """Report everything as running, like the controllers of control plane and workers."""
    if not env.list(PLANE):
        return
    if plane(env).get("status", {}).get("version") != plane(env)["spec"]["version"]:
        run_control_plane(env)
    for name, deployment in deployments(env).items():
        held = env.get(MACHINE, NAMESPACE, f"{deployment.metadata.name}-machine")
        if held is None or held.spec.version != deployment.spec.template.spec.version:
            run_workers(env, name)


def test_everything_is_created_and_referred_to() -> None:
    env = settle(small_world())

    [cluster] = env.list(CLUSTER)
    [infrastructure] = env.list(DEV_CLUSTER)
    [control_plane] = env.list(PLANE)
    assert cluster.spec.infrastructure_ref.name == infrastructure.metadata.name
    assert cluster.spec.control_plane_ref.name == control_plane.metadata.name
    assert cluster.metadata.labels["topology.cluster.x-k8s.io/owned"] == ""
    for item in (infrastructure, control_plane):
        [owner] = item.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("Cluster", "prod", True)
    machines = control_plane.body["spec"]["machineTemplate"]["spec"]["infrastructureRef"]
    assert env.get(DEV_MACHINE_TEMPLATE, NAMESPACE, machines["name"]) is not None
    deployment = deployments(env)["md-0"]
    spec = deployment.spec.template.spec
    assert (deployment.spec.replicas, spec.version) == (2, "v1.34.0")
    assert env.get(CONFIG_TEMPLATE, NAMESPACE, spec.bootstrap.config_ref.name) is not None
    assert env.get(DEV_MACHINE_TEMPLATE, NAMESPACE, spec.infrastructure_ref.name) is not None
    assert reported(env) == ("True", "ReconcileSucceeded", "")


def test_unchanged_objects_are_not_written() -> None:
    env = settle(small_world(**SIZE))
    writes = env.api.writes
    settle(env)
    assert env.api.writes == writes


def test_it_may_be_killed_anywhere() -> None:
    env = small_world(**SIZE)
    env.environment = run_everything
    crash_check((CLASSES, TOPOLOGY), env)


def test_it_may_be_killed_anywhere_while_templates_are_replaced() -> None:
    env = settle(small_world(**SIZE))
    env.environment = run_everything
    change(env, variables=[{"name": "size", "value": 4}])
    crash_check((CLASSES, TOPOLOGY), env)


def test_templates_are_replaced_when_their_content_changes() -> None:
    env = settle(small_world(**SIZE))
    old_templates = own_templates(env)
    assert set(old_templates.values()) == {1}

    change(env, variables=[{"name": "size", "value": 4}])
    settle(env)

    plane_template = plane(env)["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"]
    worker_template = deployments(env)["md-0"].spec.template.spec.infrastructure_ref.name
    after = own_templates(env)
    assert {plane_template, worker_template}.isdisjoint(old_templates)
    assert (after[plane_template], after[worker_template]) == (4, 4)
    # The control plane's old template goes at once; the workers' stays until no MachineSet uses it.
    assert len(after) == 3
    assert len(after.keys() & old_templates.keys()) == 1


def test_content_that_comes_back_gets_another_name() -> None:
    env = settle(small_world(**SIZE))
    seen = set()
    for size in (1, 4, 1, 4):
        change(env, variables=[{"name": "size", "value": size}])
        settle(env)
        seen.add(deployments(env)["md-0"].spec.template.spec.infrastructure_ref.name)
    assert len(seen) == 4


def test_templates_are_changed_in_place_where_only_metadata_changes() -> None:
    env = settle(small_world())
    old_templates = own_templates(env)
    template = env.require(DEV_MACHINE_TEMPLATE, NAMESPACE, "worker")
    env.change(DEV_MACHINE_TEMPLATE, template, {"metadata": {"labels": {"rack": "one"}}})
    settle(env)
    assert own_templates(env) == old_templates
    name = deployments(env)["md-0"].spec.template.spec.infrastructure_ref.name
    assert env.require(DEV_MACHINE_TEMPLATE, NAMESPACE, name).metadata.labels["rack"] == "one"


def test_defaults_of_a_server_do_not_replace_templates() -> None:
    env = settle(small_world())
    old_templates = own_templates(env)
    for name in old_templates:
        template = env.require(DEV_MACHINE_TEMPLATE, NAMESPACE, name)
        env.change(DEV_MACHINE_TEMPLATE, template, {"spec": {"template": {"spec": {"filledIn": True}}}})
    settle(env)
    assert own_templates(env) == old_templates


def test_fields_that_the_topology_sets_are_put_right_and_others_are_left() -> None:
    env = settle(small_world())
    [obj_] = env.list(PLANE)
    env.change(PLANE, obj_, {"spec": {"replicas": 5, "other": "mine"}})
    settle(env)
    assert (plane(env)["spec"]["replicas"], plane(env)["spec"]["other"]) == (3, "mine")


def test_a_field_that_left_the_topology_is_removed() -> None:
    env = small_world(small_cluster(controlPlane={"replicas": 3, "metadata": {"labels": {"team": "a"}}}))
    settle(env)
    assert plane(env)["metadata"]["labels"]["team"] == "a"
    change(env, controlPlane={"metadata": None})
    settle(env)
    assert "team" not in plane(env)["metadata"]["labels"]


def test_workers_come_and_go_with_the_topology() -> None:
    env = settle(small_world(small_cluster(["a", "b"])))
    run_control_plane(env)
    change(env, workers=workers("b", "c"))
    settle(env)
    assert sorted(deployments(env)) == ["b", "c"]
    assert [event.message for event in env.emitted if event.reason == "TopologyDelete"] != []


def test_health_checks_follow_class_and_topology() -> None:
    spec = small_class()[-1]["spec"]
    plane_class = {**spec["controlPlane"], "healthCheck": CHECKS}
    env = settle(small_world(controlPlane=plane_class))
    [check] = env.list(MACHINE_HEALTH_CHECK)
    assert check.metadata.name == plane(env)["metadata"]["name"]
    assert to_builtin(check.spec.selector) == {
        "matchLabels": {"topology.cluster.x-k8s.io/owned": "", "cluster.x-k8s.io/control-plane": ""}
    }
    change(env, controlPlane={"healthCheck": {"enabled": False}}, workers=workers("md-0", md_0={"healthCheck": CHECKS}))
    settle(env)
    [check] = env.list(MACHINE_HEALTH_CHECK)
    assert check.metadata.name == deployments(env)["md-0"].metadata.name
    assert check.spec.checks.node_startup_timeout_seconds == 60


def upgrading(*names: str, **of: dict[str, Any]) -> World:
    """A cluster that runs at v1.34.0 and is to go to v1.35.0."""
    env = settle(small_world(small_cluster(names)))
    run_control_plane(env)
    for name in names:
        run_workers(env, name)
    settle(env)
    change(env, version="v1.35.0", workers=workers(*names, **of))
    settle(env)
    return env


def worker_versions(env: World) -> dict[str, str]:
    return {name: deployment.spec.template.spec.version for name, deployment in deployments(env).items()}


def test_an_upgrade_covers_the_control_plane_and_then_each_worker() -> None:
    env = upgrading("a", "b")
    names = {name: deployment.metadata.name for name, deployment in deployments(env).items()}
    [cluster] = env.list(CLUSTER)
    assert plane(env)["spec"]["version"] == "v1.35.0"
    assert worker_versions(env) == {"a": "v1.34.0", "b": "v1.34.0"}
    assert reported(env) == (
        "False",
        "ClusterUpgrading",
        "\n  * ".join(
            [
                "Cluster is upgrading to v1.35.0",
                "KubeadmControlPlane upgrading to version v1.35.0",
                f"MachineDeployments {', '.join(sorted(names.values()))} pending upgrade to version v1.35.0",
            ]
        ),
    )
    assert cluster.status.workers is not None
    assert to_builtin(cluster.status.workers.upgrade_plan) == [{"version": "v1.35.0"}]
    assert cluster.metadata.annotations[STEP] == "v1.35.0"

    run_control_plane(env)
    settle(env)
    assert worker_versions(env) == {"a": "v1.35.0", "b": "v1.34.0"}
    assert f"MachineDeployment {names['a']} upgrading to version v1.35.0" in reported(env)[2]

    run_workers(env, "a")
    settle(env)
    assert worker_versions(env) == {"a": "v1.35.0", "b": "v1.35.0"}

    run_workers(env, "b")
    settle(env)
    [cluster] = env.list(CLUSTER)
    assert reported(env) == ("True", "ReconcileSucceeded", "")
    assert STEP not in cluster.metadata.annotations
    assert not cluster.status.workers or not cluster.status.workers.upgrade_plan


def test_held_workers_and_all_after_them_wait() -> None:
    env = upgrading("a", "b", a={"metadata": {"annotations": {HOLD: ""}}})
    run_control_plane(env)
    settle(env)
    assert worker_versions(env) == {"a": "v1.34.0", "b": "v1.34.0"}
    assert reported(env)[1] == "MachineDeploymentsUpgradeDeferred"
    assert "deferred using defer-upgrade or hold-upgrade-sequence annotations" in reported(env)[2]
    assert HOLD not in deployments(env)["a"].metadata.annotations


def test_new_workers_wait_for_a_control_plane_that_is_upgraded() -> None:
    env = upgrading("a")
    change(env, workers=workers("a", "new"))
    settle(env)
    assert sorted(deployments(env)) == ["a"]
    assert "MachineDeployment new creation deferred while control plane upgrade is in progress" in reported(env)[2]


def test_an_upgrade_may_be_killed_anywhere() -> None:
    env = settle(small_world())
    run_control_plane(env)
    run_workers(env, "md-0")
    settle(env)
    change(env, version="v1.35.0")

    env.environment = run_everything
    done = crash_check((CLASSES, TOPOLOGY), env)
    assert worker_versions(done) == {"md-0": "v1.35.0"}


def test_a_paused_cluster_is_left_alone() -> None:
    env = small_world()
    [cluster] = env.list(CLUSTER)
    env.change(CLUSTER, cluster, {"spec": {"paused": True}})
    settle(env)
    assert reported(env) == ("False", "Paused", "Cluster spec.paused is set to true")
    assert not env.list(PLANE)


def test_a_deleted_cluster_is_left_to_its_controller() -> None:
    env = settle(small_world())
    [cluster] = env.list(CLUSTER)
    cluster = env.change(CLUSTER, cluster, {"metadata": {"finalizers": ["hold"]}})
    env.remove(CLUSTER, cluster)
    [obj_] = env.list(PLANE)
    env.remove(PLANE, obj_)
    settle(env)
    assert has_finalizer(env.list(CLUSTER)[0], "hold")
    assert reported(env) == ("False", "Deleting", "Cluster is deleting")
    assert not env.list(PLANE)


def test_a_missing_class_is_named() -> None:
    env = world(small_cluster())
    settle(env)
    assert reported(env) == (
        "False",
        "ReconcileFailed",
        "failed to retrieve ClusterClass default/small: it does not exist",
    )


def test_a_class_that_is_not_ready_is_waited_for() -> None:
    env = small_world()
    env.settle(TOPOLOGY)
    assert reported(env)[:2] == ("False", "ClusterClassNotReconciled")
    assert not env.list(PLANE)


@pytest.mark.parametrize(
    ("topology", "problem"),
    [
        ({"variables": [{"name": "size", "value": "big"}]}, "spec.topology.variables[size].value: Invalid value"),
        ({"variables": [{"name": "colour", "value": 1}]}, "variable is not defined"),
        ({"workers": {"machineDeployments": [{"class": "x", "name": "a"}]}}, "MachineDeployment class x not found"),
        ({"controlPlane": {"variables": {"overrides": [{"name": "size", "value": 1.5}]}}}, "controlPlane.variables"),
    ],
)
def test_problems_are_reported_and_nothing_is_written(topology: dict[str, Any], problem: str) -> None:
    env = settle(small_world(small_cluster(**topology), **SIZE))
    status, reason, message = reported(env)
    assert (status, reason) == ("False", "ReconcileFailed")
    assert problem in message
    assert not env.list(PLANE)
    assert not env.list(MACHINE_DEPLOYMENT)


def test_overrides_are_for_one_part() -> None:
    topology = {
        "controlPlane": {"replicas": 1, "variables": {"overrides": [{"name": "size", "value": 8}]}},
        "variables": [{"name": "size", "value": 2}],
    }
    env = settle(small_world(small_cluster(**topology), **SIZE))
    assert sorted(own_templates(env).values()) == [2, 8]


def test_a_missing_template_is_named_and_waited_for() -> None:
    env = small_world()
    env.settle(CLASSES)
    template = env.require(CONFIG_TEMPLATE, NAMESPACE, "worker")
    env.remove(CONFIG_TEMPLATE, template)
    env.settle(TOPOLOGY)
    assert reported(env)[1] == "ReconcileFailed"
    assert "KubeadmConfigTemplate default/worker does not exist" in reported(env)[2]


def test_objects_of_others_are_not_adopted() -> None:
    env = settle(small_world())
    [obj_] = env.list(PLANE)
    env.change(PLANE, obj_, {"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": None}}})
    settle(env)
    assert "is not topology owned" in reported(env)[2]


def test_kinds_cannot_change() -> None:
    env = settle(small_world())
    [class_] = env.list(CLUSTER_CLASS)
    reference = {"kind": "KubeadmControlPlaneTemplate", "apiVersion": PLANE.api_version, "name": "small"}
    env.change(CLUSTER_CLASS, class_, {"spec": {"infrastructure": {"templateRef": reference}}})
    settle(env)
    assert "cannot be changed" in reported(env)[2]
