"""Worlds with a ClusterClass: upstream's quick start, and a small one of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ironbell.api.cluster import CLUSTER, CLUSTER_CLASS, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_POOL
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.kind import Kind
from ironbell.api.unstructured import Unstructured, dynamic_kind
from ironbell.codec.goyaml import load_all
from ironbell.controllers.capi.topology.clusterclass import ClusterClassReconciler
from ironbell.controllers.capi.topology.reconciler import TopologyReconciler
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.kube.conditions import find_condition
from ironbell.kube.testing import World

NAMESPACE = "default"
CONTRACT = {"cluster.x-k8s.io/v1beta2": "v1beta2"}
TOPOLOGY = TopologyReconciler(VariableSchemas())
CLASSES = ClusterClassReconciler()


def _kind(group: str, name: str) -> Kind[Unstructured]:
    return dynamic_kind(f"{group}.cluster.x-k8s.io", "v1beta2", name, f"{name.lower()}s")


DEV_CLUSTER, DEV_CLUSTER_TEMPLATE = (_kind("infrastructure", f"DevCluster{end}") for end in ("", "Template"))
DEV_MACHINE, DEV_MACHINE_TEMPLATE = (_kind("infrastructure", f"DevMachine{end}") for end in ("", "Template"))
DEV_POOL, DEV_POOL_TEMPLATE = (_kind("infrastructure", f"DevMachinePool{end}") for end in ("", "Template"))
CONFIG, CONFIG_TEMPLATE = (_kind("bootstrap", f"KubeadmConfig{end}") for end in ("", "Template"))
PLANE, PLANE_TEMPLATE = (_kind("controlplane", f"KubeadmControlPlane{end}") for end in ("", "Template"))
PROVIDED = (
    DEV_CLUSTER, DEV_CLUSTER_TEMPLATE, DEV_MACHINE, DEV_MACHINE_TEMPLATE, DEV_POOL, DEV_POOL_TEMPLATE, CONFIG,
    CONFIG_TEMPLATE, PLANE, PLANE_TEMPLATE,
)  # fmt: skip
_VARIABLE = re.compile(r"\$\{(\w+)(?::-((?:\$\{[^}]*\}|[^}])*))?\}")


def documents(path: Path, variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """A template of clusterctl with its variables filled in."""
    text = path.read_text()
    while (filled := _VARIABLE.sub(lambda found: variables.get(found[1], found[2] or ""), text)) != text:
        text = filled
    return [found for found in load_all(text) if found]


def world(*objects: dict[str, Any]) -> World:
    """A world with these objects, in which the kinds of the simulated provider and of kubeadm are defined."""
    made = World()
    by_name: dict[str, Any] = {kind.kind: kind for kind in (CLUSTER, CLUSTER_CLASS)}
    for kind in PROVIDED:
        made.define(kind, CONTRACT)
        by_name[kind.kind] = kind
    made.api.serve([MACHINE, MACHINE_DEPLOYMENT, MACHINE_POOL, MACHINE_HEALTH_CHECK])
    for body in objects:
        metadata = {"namespace": NAMESPACE, **body["metadata"]}
        made.add(by_name[body["kind"]], {**body, "metadata": metadata})
    return made


def template(kind: Kind[Unstructured], name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A template whose objects have this spec."""
    inner: dict[str, Any] = {"spec": spec, **({"metadata": metadata} if metadata else {})}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"template": inner},
    }


def reference(kind: Kind[Unstructured], name: str) -> dict[str, Any]:
    return {"templateRef": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}}


def small_class(**spec: Any) -> list[dict[str, Any]]:
    """A class of one kind of workers, with its templates."""
    worker = {
        "class": "worker",
        "bootstrap": reference(CONFIG_TEMPLATE, "worker"),
        "infrastructure": reference(DEV_MACHINE_TEMPLATE, "worker"),
    }
    class_ = {
        "apiVersion": CLUSTER_CLASS.api_version,
        "kind": "ClusterClass",
        "metadata": {"name": "small"},
        "spec": {
            "infrastructure": reference(DEV_CLUSTER_TEMPLATE, "small"),
            "controlPlane": {
                **reference(PLANE_TEMPLATE, "small"),
                "machineInfrastructure": reference(DEV_MACHINE_TEMPLATE, "plane"),
            },
            "workers": {"machineDeployments": [worker]},
            **spec,
        },
    }
    return [
        template(DEV_CLUSTER_TEMPLATE, "small", {"region": "one"}),
        template(PLANE_TEMPLATE, "small", {"kubeadmConfigSpec": {"format": "cloud-config"}}),
        template(DEV_MACHINE_TEMPLATE, "plane", {"size": 1}),
        template(DEV_MACHINE_TEMPLATE, "worker", {"size": 1}),
        template(CONFIG_TEMPLATE, "worker", {"format": "cloud-config"}),
        class_,
    ]


def small_cluster(names: Sequence[str] = ("md-0",), **topology: Any) -> dict[str, Any]:
    """A Cluster of that class."""
    deployments = [{"class": "worker", "name": name, "replicas": 2} for name in names]
    return {
        "apiVersion": CLUSTER.api_version,
        "kind": "Cluster",
        "metadata": {"name": "prod"},
        "spec": {
            "topology": {
                "classRef": {"name": "small"},
                "version": "v1.34.0",
                "controlPlane": {"replicas": 3},
                **({"workers": {"machineDeployments": deployments}} if deployments else {}),
                **topology,
            }
        },
    }


def small_world(cluster: dict[str, Any] | None = None, **spec: Any) -> World:
    """A world with that class and a Cluster."""
    return world(*small_class(**spec), cluster or small_cluster())


def settle(made: World) -> World:
    """Let the class and the topology come to rest."""
    made.settle(CLASSES, TOPOLOGY)
    assert not made.errors
    return made


def deployments(made: World) -> dict[str, MachineDeployment]:
    """MachineDeployments by their name in the topology."""
    label = "topology.cluster.x-k8s.io/deployment-name"
    return {one.metadata.labels[label]: one for one in made.list(MACHINE_DEPLOYMENT)}


def plane(made: World) -> dict[str, Any]:
    """The control plane object."""
    [found] = made.list(PLANE)
    return found.body


def reported(made: World) -> tuple[str, str, str]:
    """The condition TopologyReconciled of the only Cluster."""
    [cluster] = made.list(CLUSTER)
    found = find_condition(cluster.status.conditions, "TopologyReconciled")
    assert found is not None
    return found.status, found.reason, found.message


def run_control_plane(made: World, version: str | None = None) -> None:
    """What the control plane's controller does: all its machines come to a version, by default the wanted one."""
    [found] = made.list(PLANE)
    wanted = version or found.body["spec"]["version"]
    replicas = found.body["spec"].get("replicas", 1)
    made.set_status(PLANE, found, {"versions": [{"version": wanted, "replicas": replicas}], "version": wanted})


def run_workers(made: World, topology_name: str, version: str | None = None) -> None:
    """What a MachineDeployment's controller does: its Machine comes to a version, by default the wanted one."""
    deployment = deployments(made)[topology_name]
    wanted = version or deployment.spec.template.spec.version
    name = f"{deployment.metadata.name}-machine"
    held = made.get(MACHINE, NAMESPACE, name)
    if held is not None:
        made.change(MACHINE, held, {"spec": {"version": wanted}})
        return
    spec = {"clusterName": "prod", "version": wanted}
    labels = dict(deployment.spec.selector.match_labels)
    made.add(MACHINE, {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": spec})
