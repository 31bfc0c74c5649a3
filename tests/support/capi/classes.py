"""A ClusterClass of simulated machines, with a variable, patches and a health check, and a Cluster of it."""

from __future__ import annotations

from typing import Any

from support.capi.site import JOIN, NAMESPACE

INFRASTRUCTURE, BOOTSTRAP, CONTROL_PLANE = (
    f"{group}.cluster.x-k8s.io/v1beta2" for group in ("infrastructure", "bootstrap", "controlplane")
)
CORE = "cluster.x-k8s.io/v1beta2"
Document = dict[str, Any]


def _document(api_version: str, kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _reference(api_version: str, kind: str, name: str) -> Document:
    return {"templateRef": {"apiVersion": api_version, "kind": kind, "name": name}}


def class_documents(name: str = "memory") -> list[Document]:
    """The class and its templates. The variable `startup` is how long machines take to start."""
    machine = {"template": {"spec": {"backend": {"inMemory": {"vm": {"provisioning": {"startupDuration": "0s"}}}}}}}
    plane = {"kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}}
    startup = [
        {
            "op": "replace",
            "path": "/spec/template/spec/backend/inMemory/vm/provisioning/startupDuration",
            "valueFrom": {"variable": "startup"},
        }
    ]
    label = [
        {
            "op": "add",
            "path": "/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs/-",
            "valueFrom": {"template": '{name: "node-labels", value: "class={{ .builtin.machineDeployment.class }}"}'},
        }
    ]
    return [
        _document(INFRASTRUCTURE, "DevClusterTemplate", name, {"template": {"spec": {"backend": {"inMemory": {}}}}}),
        _document(INFRASTRUCTURE, "DevMachineTemplate", name, machine),
        _document(BOOTSTRAP, "KubeadmConfigTemplate", name, {"template": {"spec": JOIN}}),
        _document(CONTROL_PLANE, "KubeadmControlPlaneTemplate", name, {"template": {"spec": plane}}),
        _document(
            CORE,
            "ClusterClass",
            name,
            {
                "infrastructure": _reference(INFRASTRUCTURE, "DevClusterTemplate", name),
                "controlPlane": {
                    **_reference(CONTROL_PLANE, "KubeadmControlPlaneTemplate", name),
                    "machineInfrastructure": _reference(INFRASTRUCTURE, "DevMachineTemplate", name),
                    "healthCheck": _health_check(),
                },
                "workers": {
                    "machineDeployments": [
                        {
                            "class": "worker",
                            "bootstrap": _reference(BOOTSTRAP, "KubeadmConfigTemplate", name),
                            "infrastructure": _reference(INFRASTRUCTURE, "DevMachineTemplate", name),
                            "healthCheck": _health_check(),
                        }
                    ]
                },
                "variables": [
                    {
                        "name": "startup",
                        "required": False,
                        "schema": {"openAPIV3Schema": {"type": "string", "default": "0s"}},
                    }
                ],
                "patches": [
                    {
                        "name": "startup",
                        "definitions": [
                            {
                                "selector": {
                                    "apiVersion": INFRASTRUCTURE,
                                    "kind": "DevMachineTemplate",
                                    "matchResources": {
                                        "controlPlane": True,
                                        "machineDeploymentClass": {"names": ["worker"]},
                                    },
                                },
                                "jsonPatches": startup,
                            },
                            {
                                "selector": {
                                    "apiVersion": BOOTSTRAP,
                                    "kind": "KubeadmConfigTemplate",
                                    "matchResources": {"machineDeploymentClass": {"names": ["worker"]}},
                                },
                                "jsonPatches": label,
                            },
                        ],
                    }
                ],
            },
        ),
    ]


def _health_check() -> Document:
    unhealthy = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")]
    return {"checks": {"unhealthyNodeConditions": unhealthy}}


def class_cluster(
    name: str = "classy",
    *,
    class_: str = "memory",
    control_planes: int = 1,
    workers: int = 2,
    version: str = "v1.34.0",
    labels: dict[str, str] | None = None,
    startup: str = "0s",
) -> Document:
    """A Cluster of the class; the labels are those of the workers."""
    metadata = {"metadata": {"labels": labels}} if labels else {}
    topology = {
        "classRef": {"name": class_},
        "version": version,
        "controlPlane": {"replicas": control_planes},
        "workers": {"machineDeployments": [{"class": "worker", "name": "md", "replicas": workers, **metadata}]},
        "variables": [{"name": "startup", "value": startup}],
    }
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}
    return _document(CORE, "Cluster", name, {"clusterNetwork": network, "topology": topology})
