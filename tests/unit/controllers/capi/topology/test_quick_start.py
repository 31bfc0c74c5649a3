"""Upstream's own quick start: its ClusterClass with a Cluster of its in-memory template."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster import MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from ironbell.api.meta import to_builtin
from ironbell.kube.testing import World
from support.capi.topologies import (
    CONFIG_TEMPLATE,
    DEV_CLUSTER,
    DEV_MACHINE_TEMPLATE,
    NAMESPACE,
    documents,
    plane,
    reported,
    settle,
    world,
)
from support.programs.upstream import manifest

VARIABLES = {
    "CLUSTER_NAME": "prod",
    "NAMESPACE": NAMESPACE,
    "DOCKER_POD_CIDRS": "192.168.0.0/16",
    "DOCKER_SERVICE_CIDRS": "10.128.0.0/12",
    "DOCKER_SERVICE_DOMAIN": "cluster.local",
    "CONTROL_PLANE_MACHINE_COUNT": "3",
    "WORKER_MACHINE_COUNT": "2",
    "KUBERNETES_VERSION": "v1.34.0",
}
ARGUMENT = {"name": "eviction-hard", "value": "nodefs.available<0%,nodefs.inodesFree<0%,imagefs.available<0%"}


def quick_start(**variables: Any) -> World:
    result = documents(manifest("cluster-api/clusterclass-quick-start.yaml"), VARIABLES)
    [cluster] = [
        document
        for document in documents(manifest("cluster-api/cluster-template-in-memory-topology.yaml"), VARIABLES)
        if document["kind"] == "Cluster"
    ]
    topology = cluster["spec"]["topology"]
    topology["classRef"]["name"] = "quick-start"
    topology["variables"] = [{"name": name, "value": value} for name, value in variables.items()]
    return settle(world(*result, cluster))


@pytest.fixture(scope="module")
def env() -> World:
    return quick_start(kubeadmControlPlaneMaxSurge="1", etcdImageTag="3.5.9-0", kubeletLogLevel="4")


def owned_objects(env: World, kind: Any) -> list[dict[str, Any]]:
    return [obj.body for obj in env.list(kind) if "topology.cluster.x-k8s.io/owned" in obj.metadata.labels]


def test_it_is_reconciled(env: World) -> None:
    assert reported(env) == ("True", "ReconcileSucceeded", "")


def test_the_infrastructure_has_the_default_of_a_required_variable(env: World) -> None:
    [infrastructure] = env.list(DEV_CLUSTER)
    docker = infrastructure.body["spec"]["backend"]["docker"]
    assert docker["loadBalancer"] == {"imageRepository": "kindest"}
    assert len(docker["failureDomains"]) == 8


def test_the_control_plane_is_patched_and_keeps_the_topologys_fields(env: World) -> None:
    spec, metadata = plane(env)["spec"], plane(env)["metadata"]
    kubeadm, machines = spec["kubeadmConfigSpec"], spec["machineTemplate"]
    assert (spec["version"], spec["replicas"]) == ("v1.34.0", 3)
    assert kubeadm["clusterConfiguration"]["etcd"] == {"local": {"imageTag": "3.5.9-0"}}
    assert kubeadm["initConfiguration"]["nodeRegistration"]["kubeletExtraArgs"] == [
        ARGUMENT,
        {"name": "v", "value": "4"},
    ]
    assert spec["rollout"]["before"] == {"certificatesExpiryDays": 21}
    assert machines["spec"]["deletion"] == {
        "nodeDrainTimeoutSeconds": 1,
        "nodeVolumeDetachTimeoutSeconds": 300,
        "nodeDeletionTimeoutSeconds": 0,
    }
    assert [taint["key"] for taint in machines["spec"]["taints"]] == [
        "pre-existing-on-initialization-taint",
        "pre-existing-always-taint",
    ]
    labels = machines["metadata"]["labels"]
    assert labels["ControlPlaneTemplate.machineTemplate.label"] == "ControlPlaneTemplate.machineTemplate.labelValue"
    assert labels["ClusterClass.controlPlane.label"] == "ClusterClass.controlPlane.labelValue"
    assert labels["Cluster.topology.controlPlane.label"] == "Cluster.topology.controlPlane.labelValue"
    assert metadata["labels"]["ControlPlaneTemplate.template.label"] == "ControlPlaneTemplate.template.labelValue"
    assert metadata["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "quick-start-control-plane"


def test_machines_get_the_image_of_their_version(env: World) -> None:
    dockers = [
        owned_object["spec"]["template"]["spec"]["backend"]["docker"]
        for owned_object in owned_objects(env, DEV_MACHINE_TEMPLATE)
    ]
    assert [backend["customImage"] for backend in dockers] == ["kindest/node:v1.34.0"] * 2
    assert [item["preLoadImages"] for item in dockers] == [[], []]


def test_workers_get_their_arguments_by_a_wildcard(env: World) -> None:
    [config] = owned_objects(env, CONFIG_TEMPLATE)
    registration = config["spec"]["template"]["spec"]["joinConfiguration"]["nodeRegistration"]
    assert registration["kubeletExtraArgs"] == [ARGUMENT, {"name": "v", "value": "4"}]
    assert config["metadata"]["labels"]["BootstrapConfigTemplate.machineDeployment.label"]


def test_the_machine_deployment(env: World) -> None:
    [deployment] = env.list(MACHINE_DEPLOYMENT)
    spec = to_builtin(deployment.spec)
    assert spec["replicas"] == 2
    assert spec["rollout"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "20%", "maxUnavailable": 0},
    }
    assert spec["selector"]["matchLabels"] == {
        "cluster.x-k8s.io/cluster-name": "prod",
        "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/deployment-name": "md-0",
    }
    machine = spec["template"]["spec"]
    assert (machine["version"], machine["minReadySeconds"]) == ("v1.34.0", 5)
    labels = spec["template"]["metadata"]["labels"]
    assert labels["ClusterClass.machineDeployment.label"] == "ClusterClass.machineDeployment.labelValue"
    assert labels["Cluster.topology.machineDeployment.label"] == "Cluster.topology.machineDeployment.labelValue"
    assert deployment.metadata.name.startswith("prod-md-0-")


def test_the_health_check_is_that_of_the_class(env: World) -> None:
    [check] = env.list(MACHINE_HEALTH_CHECK)
    checks = to_builtin(check.spec.checks)
    assert checks["unhealthyNodeConditions"] == [
        {"type": "e2e.remediation.condition", "status": "False", "timeoutSeconds": 20}
    ]
    assert check.metadata.name == plane(env)["metadata"]["name"]


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"controlPlaneTaint": "yes"}, "controlPlaneTaint"),
        ({"preLoadImages": [1]}, "preLoadImages"),
        ({"imageRepository": "kindest"}, "spec.topology.variables[imageRepository]"),
    ],
)
def test_wrong_values_are_rejected(variables: dict[str, Any], problem: str) -> None:
    result = quick_start(**variables)
    assert reported(result)[1] == "ReconcileFailed"
    assert problem in reported(result)[2]
    assert not result.list(DEV_CLUSTER)
