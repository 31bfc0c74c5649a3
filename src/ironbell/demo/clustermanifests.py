"""Manifests of a Cluster on a lab's servers, as a user would write them. Pure but for one file read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ironbell.base.ports import KUBERNETES_API_PORT
from ironbell.image.build import manifest_path
from ironbell.image.kubernetes.release import ContainerImage, parse_images, pause
from ironbell.lab.files import LabState
from ironbell.lab.manifests import manifests as lab_manifests

Document = dict[str, Any]

CORE, INFRASTRUCTURE = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
BOOTSTRAP, CONTROL_PLANE = "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
ADDONS = "addons.cluster.x-k8s.io"
ROLE, POOL = "role", "pool"
_POD_NETWORK = Path(__file__).with_name("pod-network.yaml")
_PODS = {"pods": "routed"}


@dataclass(frozen=True)
class ClusterRequest:
    """The desired cluster. Hardware is selected by its label `role`: `cp`, or a pool's name."""

    name: str
    endpoint: str
    """Address of the control plane."""
    image_url: str
    """URL of node images, as a TinkerbellCluster's imageLookupFormat; empty selects the images that the site serves."""
    release: str
    pause_image: str
    pools: Mapping[str, int]
    """Number of workers by pool: each pool is a MachineDeployment, named after cluster and pool."""
    control_planes: int = 1
    commands: Sequence[str] = ()
    """Commands that every node runs before kubeadm."""
    control_plane_commands: Sequence[str] = ()
    control_plane_files: Sequence[Mapping[str, str]] = ()


def pause_image(node_image: Path) -> str:
    """The reference of the pause image in a node image."""
    return pause(container_images(node_image)).reference


def container_images(node_image: Path) -> tuple[ContainerImage, ...]:
    """The container images in a node image, according to its manifest."""
    manifest = msgspec.json.decode(manifest_path(node_image).read_bytes(), type=dict[str, Any])
    return parse_images("\n".join(manifest["container_images"]))


def servers(lab: LabState) -> list[Document]:
    """Secrets, BMCs and Hardware of a lab's machines; the role of each Hardware is its name up to the dash."""
    passwords = {machine.name: Path(machine.password_file).read_text() for machine in lab.machines}
    documents = lab_manifests(lab, passwords)
    for document in documents:
        if document["kind"] == "Hardware":
            document["metadata"]["labels"] = {ROLE: document["metadata"]["name"].partition("-")[0]}
            # CoreDNS reports a loop on a node without any name server; this one never answers
            document["spec"]["interfaces"][0]["dhcp"]["name_servers"] = [lab.gateway]
    return documents


def cluster(request: ClusterRequest) -> list[Document]:
    """The Cluster and all objects that it refers to. Rollouts need no spare server."""
    name, endpoint = request.name, {"host": request.endpoint, "port": KUBERNETES_API_PORT}
    networks = {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/16"]}}
    return [
        document(INFRASTRUCTURE, "v1beta1", "TinkerbellCluster", name, {
            "controlPlaneEndpoint": endpoint,
            **({"imageLookupFormat": request.image_url} if request.image_url else {}),
        }),
        document(CORE, "v1beta2", "Cluster", name, {
            "clusterNetwork": networks,
            "infrastructureRef": reference(INFRASTRUCTURE, "TinkerbellCluster", name),
            "controlPlaneRef": reference(CONTROL_PLANE, "KubeadmControlPlane", f"{name}-cp"),
            "controlPlaneEndpoint": endpoint,
        }, labels=_PODS),
        _machines(name, "cp"),
        _control_plane(request),
        *(part for pool, replicas in request.pools.items() for part in _pool(request, pool, replicas)),
        *_pod_network(request.pause_image),
    ]  # fmt: skip


def _control_plane(request: ClusterRequest) -> Document:
    registration = _registration()
    control: Document = {
        "initConfiguration": {"nodeRegistration": registration},
        "joinConfiguration": {"nodeRegistration": registration},
    }
    if request.control_plane_files:
        control["files"] = [dict(file) for file in request.control_plane_files]
    commands = [*request.commands, *request.control_plane_commands]
    if commands:
        control["preKubeadmCommands"] = commands
    surge = 0 if request.control_planes > 1 else 1
    role = f"{request.name}-cp"
    return document(CONTROL_PLANE, "v1beta2", "KubeadmControlPlane", role, {
        "replicas": request.control_planes,
        "version": request.release,
        "machineTemplate": {"spec": {
            "infrastructureRef": reference(INFRASTRUCTURE, "TinkerbellMachineTemplate", role),
        }},
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}},
        "kubeadmConfigSpec": control,
    })  # fmt: skip


def _pool(request: ClusterRequest, pool: str, replicas: int) -> list[Document]:
    name = f"{request.name}-{pool}"
    joining: Document = {"joinConfiguration": {"nodeRegistration": _registration()}}
    if request.commands:
        joining["preKubeadmCommands"] = list(request.commands)
    return [
        _machines(request.name, pool),
        document(BOOTSTRAP, "v1beta2", "KubeadmConfigTemplate", name, {"template": {"spec": joining}}),
        document(CORE, "v1beta2", "MachineDeployment", name, {
            "clusterName": request.name,
            "replicas": replicas,
            "selector": {"matchLabels": {POOL: pool}},
            "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
            "template": {"metadata": {"labels": {POOL: pool}}, "spec": {
                "clusterName": request.name,
                "version": request.release,
                "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfigTemplate", name)},
                "infrastructureRef": reference(INFRASTRUCTURE, "TinkerbellMachineTemplate", name),
            }},
        }),
    ]  # fmt: skip


def _registration() -> Document:
    return {"kubeletExtraArgs": [{"name": "provider-id", "value": "PROVIDER_ID"}]}


def _machines(name: str, role: str) -> Document:
    term = {"labelSelector": {"matchLabels": {ROLE: role}}}
    spec = {"bootOptions": {"bootMode": "netboot"}, "hardwareAffinity": {"required": [term]}}
    return document(INFRASTRUCTURE, "v1beta1", "TinkerbellMachineTemplate", f"{name}-{role}", {
        "template": {"spec": spec},
    })  # fmt: skip


def _pod_network(image: str) -> list[Document]:
    content = _POD_NETWORK.read_text().replace("${PAUSE_IMAGE}", image)
    settings = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pod-network", "namespace": "default"},
        "data": {"pod-network.yaml": content},
    }  # fmt: skip
    spec = {
        "clusterSelector": {"matchLabels": _PODS},
        "resources": [{"kind": "ConfigMap", "name": "pod-network"}],
        "strategy": "ApplyOnce",
    }
    return [settings, document(ADDONS, "v1beta2", "ClusterResourceSet", "pod-network", spec)]


def hello(image: str) -> Document:
    """A DaemonSet: one pod on each worker."""
    labels = {"app": "hello"}
    container = {"name": "hello", "image": image, "imagePullPolicy": "IfNotPresent"}
    return document("apps", "v1", "DaemonSet", "hello", {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [container], "terminationGracePeriodSeconds": 1,
        }},
    })  # fmt: skip


def reference(group: str, kind: str, name: str) -> dict[str, str]:
    """A reference to an object of the same namespace."""
    return {"apiGroup": group, "kind": kind, "name": name}


def document(
    group: str, version: str, kind: str, name: str, spec: Document, *, labels: Mapping[str, str] | None = None
) -> Document:
    """An object of the namespace `default`."""
    meta: Document = {"name": name, "namespace": "default"}
    if labels:
        meta["labels"] = dict(labels)
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": meta, "spec": spec}
