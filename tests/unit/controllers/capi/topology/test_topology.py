"""A topology from its first object to its last: made, changed, upgraded, and what keeps it from that."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from ironbell.api.meta import to_builtin
from ironbell.kube.finalizers import has_finalizer
from ironbell.kube.testing import World, crash_check
from support.topologies import (
    CLASSES,
    CONFIG_TEMPLATE,
    DEV_CLUSTER,
    DEV_MACHINE_TEMPLATE,
    NAMESPACE,
    PLANE,
    TOPOLOGY,
    deployments,
    plane,
    run_control_plane,
    run_workers,
    said,
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


def own_templates(made: World) -> dict[str, Any]:
    """Machine templates that belong to the cluster, by name, with their size."""
    return {
        one.metadata.name: one.body["spec"]["template"]["spec"]["size"]
        for one in made.list(DEV_MACHINE_TEMPLATE)
        if "topology.cluster.x-k8s.io/owned" in one.metadata.labels
    }


def change(made: World, **topology: Any) -> None:
    [cluster] = made.list(CLUSTER)
    made.change(CLUSTER, cluster, {"spec": {"topology": topology}})


def workers(*names: str, **of: dict[str, Any]) -> dict[str, Any]:
    found = [{"class": "worker", "name": name, "replicas": 2, **of.get(name.replace("-", "_"), {})} for name in names]
    return {"machineDeployments": found}


def run_everything(made: World) -> None:
    """What the controllers of control plane and workers do at last."""
    if not made.list(PLANE):
        return
    if plane(made).get("status", {}).get("version") != plane(made)["spec"]["version"]:
        run_control_plane(made)
    for name, one in deployments(made).items():
        held = made.get(MACHINE, NAMESPACE, f"{one.metadata.name}-machine")
        if held is None or held.spec.version != one.spec.template.spec.version:
            run_workers(made, name)


def test_everything_is_made_and_referred_to() -> None:
    made = settle(small_world())

    [cluster] = made.list(CLUSTER)
    [infrastructure] = made.list(DEV_CLUSTER)
    [control_plane] = made.list(PLANE)
    assert cluster.spec.infrastructure_ref.name == infrastructure.metadata.name
    assert cluster.spec.control_plane_ref.name == control_plane.metadata.name
    assert cluster.metadata.labels["topology.cluster.x-k8s.io/owned"] == ""
    for one in (infrastructure, control_plane):
        [owner] = one.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller) == ("Cluster", "prod", True)
    machines = control_plane.body["spec"]["machineTemplate"]["spec"]["infrastructureRef"]
    assert made.get(DEV_MACHINE_TEMPLATE, NAMESPACE, machines["name"]) is not None
    deployment = deployments(made)["md-0"]
    spec = deployment.spec.template.spec
    assert (deployment.spec.replicas, spec.version) == (2, "v1.34.0")
    assert made.get(CONFIG_TEMPLATE, NAMESPACE, spec.bootstrap.config_ref.name) is not None
    assert made.get(DEV_MACHINE_TEMPLATE, NAMESPACE, spec.infrastructure_ref.name) is not None
    assert said(made) == ("True", "ReconcileSucceeded", "")


def test_what_is_as_it_should_be_is_not_written() -> None:
    made = settle(small_world(**SIZE))
    writes = made.api.writes
    settle(made)
    assert made.api.writes == writes


def test_it_may_be_killed_anywhere() -> None:
    made = small_world(**SIZE)
    made.environment = run_everything
    crash_check((CLASSES, TOPOLOGY), made)


def test_it_may_be_killed_anywhere_while_templates_are_replaced() -> None:
    made = settle(small_world(**SIZE))
    made.environment = run_everything
    change(made, variables=[{"name": "size", "value": 4}])
    crash_check((CLASSES, TOPOLOGY), made)


def test_templates_are_replaced_when_their_content_changes() -> None:
    made = settle(small_world(**SIZE))
    before = own_templates(made)
    assert set(before.values()) == {1}

    change(made, variables=[{"name": "size", "value": 4}])
    settle(made)

    plane_template = plane(made)["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"]
    worker_template = deployments(made)["md-0"].spec.template.spec.infrastructure_ref.name
    after = own_templates(made)
    assert {plane_template, worker_template}.isdisjoint(before)
    assert (after[plane_template], after[worker_template]) == (4, 4)
    # The control plane's old template goes at once; the workers' stays until no MachineSet uses it.
    assert len(after) == 3
    assert len(after.keys() & before.keys()) == 1


def test_content_that_comes_back_gets_another_name() -> None:
    made = settle(small_world(**SIZE))
    seen = set()
    for size in (1, 4, 1, 4):
        change(made, variables=[{"name": "size", "value": size}])
        settle(made)
        seen.add(deployments(made)["md-0"].spec.template.spec.infrastructure_ref.name)
    assert len(seen) == 4


def test_templates_are_changed_in_place_where_only_metadata_changes() -> None:
    made = settle(small_world())
    before = own_templates(made)
    template = made.require(DEV_MACHINE_TEMPLATE, NAMESPACE, "worker")
    made.change(DEV_MACHINE_TEMPLATE, template, {"metadata": {"labels": {"rack": "one"}}})
    settle(made)
    assert own_templates(made) == before
    name = deployments(made)["md-0"].spec.template.spec.infrastructure_ref.name
    assert made.require(DEV_MACHINE_TEMPLATE, NAMESPACE, name).metadata.labels["rack"] == "one"


def test_what_a_server_fills_in_does_not_replace_templates() -> None:
    made = settle(small_world())
    before = own_templates(made)
    for name in before:
        template = made.require(DEV_MACHINE_TEMPLATE, NAMESPACE, name)
        made.change(DEV_MACHINE_TEMPLATE, template, {"spec": {"template": {"spec": {"filledIn": True}}}})
    settle(made)
    assert own_templates(made) == before


def test_fields_that_the_topology_sets_are_put_right_and_others_are_left() -> None:
    made = settle(small_world())
    [found] = made.list(PLANE)
    made.change(PLANE, found, {"spec": {"replicas": 5, "other": "mine"}})
    settle(made)
    assert (plane(made)["spec"]["replicas"], plane(made)["spec"]["other"]) == (3, "mine")


def test_a_field_that_left_the_topology_is_taken_away() -> None:
    made = small_world(small_cluster(controlPlane={"replicas": 3, "metadata": {"labels": {"team": "a"}}}))
    settle(made)
    assert plane(made)["metadata"]["labels"]["team"] == "a"
    change(made, controlPlane={"metadata": None})
    settle(made)
    assert "team" not in plane(made)["metadata"]["labels"]


def test_workers_come_and_go_with_the_topology() -> None:
    made = settle(small_world(small_cluster(["a", "b"])))
    run_control_plane(made)
    change(made, workers=workers("b", "c"))
    settle(made)
    assert sorted(deployments(made)) == ["b", "c"]
    assert [one.message for one in made.emitted if one.reason == "TopologyDelete"] != []


def test_health_checks_follow_class_and_topology() -> None:
    spec = small_class()[-1]["spec"]
    plane_class = {**spec["controlPlane"], "healthCheck": CHECKS}
    made = settle(small_world(controlPlane=plane_class))
    [check] = made.list(MACHINE_HEALTH_CHECK)
    assert check.metadata.name == plane(made)["metadata"]["name"]
    assert to_builtin(check.spec.selector) == {
        "matchLabels": {"topology.cluster.x-k8s.io/owned": "", "cluster.x-k8s.io/control-plane": ""}
    }
    change(
        made, controlPlane={"healthCheck": {"enabled": False}}, workers=workers("md-0", md_0={"healthCheck": CHECKS})
    )
    settle(made)
    [check] = made.list(MACHINE_HEALTH_CHECK)
    assert check.metadata.name == deployments(made)["md-0"].metadata.name
    assert check.spec.checks.node_startup_timeout_seconds == 60


def upgrading(*names: str, **of: dict[str, Any]) -> World:
    """A cluster that runs at v1.34.0 and is to go to v1.35.0."""
    made = settle(small_world(small_cluster(names)))
    run_control_plane(made)
    for name in names:
        run_workers(made, name)
    settle(made)
    change(made, version="v1.35.0", workers=workers(*names, **of))
    settle(made)
    return made


def worker_versions(made: World) -> dict[str, str]:
    return {name: one.spec.template.spec.version for name, one in deployments(made).items()}


def test_an_upgrade_goes_through_the_control_plane_and_then_the_workers_one_by_one() -> None:
    made = upgrading("a", "b")
    names = {name: one.metadata.name for name, one in deployments(made).items()}
    [cluster] = made.list(CLUSTER)
    assert plane(made)["spec"]["version"] == "v1.35.0"
    assert worker_versions(made) == {"a": "v1.34.0", "b": "v1.34.0"}
    assert said(made) == (
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

    run_control_plane(made)
    settle(made)
    assert worker_versions(made) == {"a": "v1.35.0", "b": "v1.34.0"}
    assert f"MachineDeployment {names['a']} upgrading to version v1.35.0" in said(made)[2]

    run_workers(made, "a")
    settle(made)
    assert worker_versions(made) == {"a": "v1.35.0", "b": "v1.35.0"}

    run_workers(made, "b")
    settle(made)
    [cluster] = made.list(CLUSTER)
    assert said(made) == ("True", "ReconcileSucceeded", "")
    assert STEP not in cluster.metadata.annotations
    assert not cluster.status.workers or not cluster.status.workers.upgrade_plan


def test_held_workers_and_all_after_them_wait() -> None:
    made = upgrading("a", "b", a={"metadata": {"annotations": {HOLD: ""}}})
    run_control_plane(made)
    settle(made)
    assert worker_versions(made) == {"a": "v1.34.0", "b": "v1.34.0"}
    assert said(made)[1] == "MachineDeploymentsUpgradeDeferred"
    assert "deferred using defer-upgrade or hold-upgrade-sequence annotations" in said(made)[2]
    assert HOLD not in deployments(made)["a"].metadata.annotations


def test_new_workers_wait_for_a_control_plane_that_is_upgraded() -> None:
    made = upgrading("a")
    change(made, workers=workers("a", "new"))
    settle(made)
    assert sorted(deployments(made)) == ["a"]
    assert "MachineDeployment new creation deferred while control plane upgrade is in progress" in said(made)[2]


def test_an_upgrade_may_be_killed_anywhere() -> None:
    made = settle(small_world())
    run_control_plane(made)
    run_workers(made, "md-0")
    settle(made)
    change(made, version="v1.35.0")

    made.environment = run_everything
    done = crash_check((CLASSES, TOPOLOGY), made)
    assert worker_versions(done) == {"md-0": "v1.35.0"}


def test_a_paused_cluster_is_left_alone() -> None:
    made = small_world()
    [cluster] = made.list(CLUSTER)
    made.change(CLUSTER, cluster, {"spec": {"paused": True}})
    settle(made)
    assert said(made) == ("False", "Paused", "Cluster spec.paused is set to true")
    assert not made.list(PLANE)


def test_a_cluster_that_goes_is_left_to_its_controller() -> None:
    made = settle(small_world())
    [cluster] = made.list(CLUSTER)
    cluster = made.change(CLUSTER, cluster, {"metadata": {"finalizers": ["hold"]}})
    made.remove(CLUSTER, cluster)
    [found] = made.list(PLANE)
    made.remove(PLANE, found)
    settle(made)
    assert has_finalizer(made.list(CLUSTER)[0], "hold")
    assert said(made) == ("False", "Deleting", "Cluster is deleting")
    assert not made.list(PLANE)


def test_a_class_that_is_not_there_is_named() -> None:
    made = world(small_cluster())
    settle(made)
    assert said(made) == (
        "False",
        "ReconcileFailed",
        "failed to retrieve ClusterClass default/small: it does not exist",
    )


def test_a_class_that_is_not_ready_is_waited_for() -> None:
    made = small_world()
    made.settle(TOPOLOGY)
    assert said(made)[:2] == ("False", "ClusterClassNotReconciled")
    assert not made.list(PLANE)


@pytest.mark.parametrize(
    ("topology", "problem"),
    [
        ({"variables": [{"name": "size", "value": "big"}]}, "spec.topology.variables[size].value: Invalid value"),
        ({"variables": [{"name": "colour", "value": 1}]}, "variable is not defined"),
        ({"workers": {"machineDeployments": [{"class": "x", "name": "a"}]}}, "MachineDeployment class x not found"),
        ({"controlPlane": {"variables": {"overrides": [{"name": "size", "value": 1.5}]}}}, "controlPlane.variables"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(topology: dict[str, Any], problem: str) -> None:
    made = settle(small_world(small_cluster(**topology), **SIZE))
    status, reason, message = said(made)
    assert (status, reason) == ("False", "ReconcileFailed")
    assert problem in message
    assert not made.list(PLANE)
    assert not made.list(MACHINE_DEPLOYMENT)


def test_overrides_are_for_one_part() -> None:
    topology = {
        "controlPlane": {"replicas": 1, "variables": {"overrides": [{"name": "size", "value": 8}]}},
        "variables": [{"name": "size", "value": 2}],
    }
    made = settle(small_world(small_cluster(**topology), **SIZE))
    assert sorted(own_templates(made).values()) == [2, 8]


def test_a_missing_template_is_named_and_waited_for() -> None:
    made = small_world()
    made.settle(CLASSES)
    template = made.require(CONFIG_TEMPLATE, NAMESPACE, "worker")
    made.remove(CONFIG_TEMPLATE, template)
    made.settle(TOPOLOGY)
    assert said(made)[1] == "ReconcileFailed"
    assert "KubeadmConfigTemplate default/worker does not exist" in said(made)[2]


def test_what_somebody_else_made_is_not_taken() -> None:
    made = settle(small_world())
    [found] = made.list(PLANE)
    made.change(PLANE, found, {"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": None}}})
    settle(made)
    assert "is not topology owned" in said(made)[2]


def test_kinds_cannot_change() -> None:
    made = settle(small_world())
    [class_] = made.list(CLUSTER_CLASS)
    reference = {"kind": "KubeadmControlPlaneTemplate", "apiVersion": PLANE.api_version, "name": "small"}
    made.change(CLUSTER_CLASS, class_, {"spec": {"infrastructure": {"templateRef": reference}}})
    settle(made)
    assert "cannot be changed" in said(made)[2]
