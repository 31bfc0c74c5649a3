"""docs/examples: the cluster on servers by ClusterClass gives what the plain form gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from ironbell.api.meta import to_builtin
from ironbell.api.unstructured import dynamic_kind
from ironbell.codec.envsubst import substitute
from ironbell.codec.goyaml import load_all
from ironbell.kube.testing import World
from support.capi.topologies import (
    CONFIG_TEMPLATE,
    CONTRACT,
    NAMESPACE,
    PLANE,
    PLANE_TEMPLATE,
    plane,
    reported,
    settle,
    world,
)

EXAMPLES = Path(__file__).parents[5] / "docs" / "examples"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
CLUSTERS, MACHINES = (
    dynamic_kind(INFRASTRUCTURE, "v1beta1", kind, f"{kind.lower()}s")
    for kind in ("TinkerbellCluster", "TinkerbellMachineTemplate")
)
CLUSTER_TEMPLATES = dynamic_kind(INFRASTRUCTURE, "v1beta1", "TinkerbellClusterTemplate", "tinkerbellclustertemplates")
KINDS = {
    kind.kind: kind
    for kind in (CLUSTER, CLUSTER_CLASS, CLUSTERS, CLUSTER_TEMPLATES, MACHINES, PLANE_TEMPLATE, CONFIG_TEMPLATE)
}
VALUES = {
    "CLUSTER_NAME": "plant",
    "NAMESPACE": NAMESPACE,
    "KUBERNETES_VERSION": "v1.36.3",
    "CONTROL_PLANE_MACHINE_COUNT": "3",
    "WORKER_MACHINE_COUNT": "2",
    "ENDPOINT": "192.168.20.5",
}


def example(name: str, **values: str) -> list[dict[str, Any]]:
    text = substitute((EXAMPLES / name).read_text(), {**VALUES, **values})
    return [document for document in load_all(text) if document]


def by_class(**values: str) -> World:
    env = world()
    for kind in (CLUSTERS, CLUSTER_TEMPLATES, MACHINES):
        env.define(kind, dict.fromkeys(CONTRACT, "v1beta1"))
    for body in example("clusterclass-on-servers.yaml", **values):
        if body["kind"] in KINDS:
            env.add(KINDS[body["kind"]], body)
    return settle(env)


def plain(kind: str, **values: str) -> list[dict[str, Any]]:
    return [obj["spec"] for obj in example("cluster-on-servers.yaml", **values) if obj["kind"] == kind]


@pytest.mark.parametrize("values", [{}, {"ROUTER_ID": "77", "CONTROL_PLANE_SURGE": "1", "ENDPOINT": "192.0.2.5"}])
def test_the_control_plane_is_the_same(values: dict[str, str]) -> None:
    env = by_class(**values)
    assert reported(env)[:2] == ("True", "ReconcileSucceeded")
    spec, (desired,) = plane(env)["spec"], plain("KubeadmControlPlane", **values)
    for name in ("replicas", "version", "rollout", "kubeadmConfigSpec"):
        assert spec[name] == desired[name], name
    assert spec["machineTemplate"]["spec"]["deletion"] == desired["machineTemplate"]["spec"]["deletion"]
    [infrastructure] = env.list(CLUSTERS)
    assert infrastructure.body["spec"] == plain("TinkerbellCluster", **values)[0]


def test_the_workers_and_the_health_checks_are_the_same() -> None:
    env = by_class()
    [deployment], (desired,) = env.list(MACHINE_DEPLOYMENT), plain("MachineDeployment")
    spec = to_builtin(deployment.spec)
    for name in ("replicas", "rollout"):
        assert spec[name] == desired[name], name
    for name in ("version", "deletion"):
        assert spec["template"]["spec"][name] == desired["template"]["spec"][name], name
    checks = [to_builtin(check.spec) for check in env.list(MACHINE_HEALTH_CHECK)]
    parts = ("checks", "remediation")
    reduced = [{name: item[name] for name in parts if name in item} for item in checks]
    assert sorted(reduced, key=str) == sorted(
        ({name: obj[name] for name in parts if name in obj} for obj in plain("MachineHealthCheck")), key=str
    )


def test_each_role_has_its_servers() -> None:
    env = by_class()
    affinities = [template.body["spec"]["template"]["spec"]["hardwareAffinity"] for template in env.list(MACHINES)]
    desired = [obj["template"]["spec"]["hardwareAffinity"] for obj in plain("TinkerbellMachineTemplate")]
    assert all(affinity in desired for affinity in affinities)
    assert len({str(item) for item in affinities}) == 2
    assert env.list(PLANE)
