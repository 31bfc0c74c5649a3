"""Manifests of clusters on simulated servers, as a person would write them."""

from __future__ import annotations

from typing import Any

NAMESPACE = "default"
VERSION = "v1.34.2"
_CAPI, _TINKERBELL = "cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
_CONTROL_PLANE, _BOOTSTRAP = "controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io"
_REGISTRATION = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "provider-id", "value": "PROVIDER_ID"}]}}
_NOT_TOLD = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "2"}]}}

Document = dict[str, Any]


def cluster(
    name: str,
    address: str,
    *,
    control_planes: int = 1,
    workers: int = 0,
    spread: bool = True,
    told: bool = True,
    version: str = VERSION,
) -> list[Document]:
    """All objects of a cluster whose API is at an address of the loopback network; `spread` over racks, its kubelets
    `told` which machine they run on."""
    registration = _REGISTRATION if told else _NOT_TOLD
    endpoint: Document = {"controlPlaneEndpoint": {"host": address, "port": 6443}}
    infrastructure = {"apiGroup": _TINKERBELL, "kind": "TinkerbellMachineTemplate", "name": name}
    found = [
        _object(
            f"{_TINKERBELL}/v1beta1",
            "TinkerbellCluster",
            name,
            endpoint | ({"failureDomainLabel": "rack"} if spread else {}),
        ),
        _object(
            f"{_TINKERBELL}/v1beta1",
            "TinkerbellMachineTemplate",
            name,
            {"template": {"spec": {"bootOptions": {"bootMode": "netboot"}}}},
        ),
        _object(
            f"{_CONTROL_PLANE}/v1beta2",
            "KubeadmControlPlane",
            name,
            {
                "replicas": control_planes,
                "version": version,
                "machineTemplate": {"spec": {"infrastructureRef": infrastructure}},
                "kubeadmConfigSpec": {
                    "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"},
                    "initConfiguration": registration,
                    "joinConfiguration": registration,
                },
            },
        ),
        _object(
            f"{_CAPI}/v1beta2",
            "Cluster",
            name,
            {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "controlPlaneRef": {"apiGroup": _CONTROL_PLANE, "kind": "KubeadmControlPlane", "name": name},
                "infrastructureRef": {"apiGroup": _TINKERBELL, "kind": "TinkerbellCluster", "name": name},
            },
        ),
    ]
    if not workers:
        return found
    return [*found, *_workers(name, workers, version, infrastructure, registration)]


def in_memory(documents: list[Document]) -> list[Document]:
    """The same cluster on machines that are made in memory: with a DevCluster and DevMachines."""
    kinds = {"TinkerbellCluster": "DevCluster", "TinkerbellMachineTemplate": "DevMachineTemplate"}
    backend: Document = {"backend": {"inMemory": {}}}
    specs: dict[str, Document] = {"DevCluster": backend, "DevMachineTemplate": {"template": {"spec": backend}}}

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: kinds.get(each, each) if key == "kind" else renamed(each) for key, each in value.items()}

    found = [renamed(document) for document in documents]
    return [
        {**document, "apiVersion": f"{_TINKERBELL}/v1beta2", "spec": specs[document["kind"]]}
        if document["kind"] in specs
        else document
        for document in found
    ]


def _workers(name: str, count: int, version: str, infrastructure: Document, registration: Document) -> list[Document]:
    template = {
        "clusterName": name,
        "version": version,
        "bootstrap": {"configRef": {"apiGroup": _BOOTSTRAP, "kind": "KubeadmConfigTemplate", "name": name}},
        "infrastructureRef": infrastructure,
    }
    return [
        _object(
            f"{_BOOTSTRAP}/v1beta2",
            "KubeadmConfigTemplate",
            name,
            {"template": {"spec": {"joinConfiguration": registration}}},
        ),
        _object(
            f"{_CAPI}/v1beta2",
            "MachineDeployment",
            name,
            {"clusterName": name, "replicas": count, "selector": {}, "template": {"spec": template}},
        ),
    ]


def worker(cluster: str, name: str, *, version: str = VERSION) -> list[Document]:
    """A Machine that nobody owns, with its KubeadmConfig and its TinkerbellMachine, all of one name."""
    bootstrap = {"configRef": {"apiGroup": _BOOTSTRAP, "kind": "KubeadmConfig", "name": name}}
    infrastructure = {"apiGroup": _TINKERBELL, "kind": "TinkerbellMachine", "name": name}
    spec = {"clusterName": cluster, "version": version, "bootstrap": bootstrap, "infrastructureRef": infrastructure}
    return [
        _object(f"{_BOOTSTRAP}/v1beta2", "KubeadmConfig", name, {"joinConfiguration": _REGISTRATION}),
        _object(f"{_TINKERBELL}/v1beta1", "TinkerbellMachine", name, {"bootOptions": {"bootMode": "netboot"}}),
        _object(f"{_CAPI}/v1beta2", "Machine", name, spec),
    ]


def health_checks(name: str) -> list[Document]:
    """What has Machines of a cluster replaced whose server is not installed within two hours, that do not become nodes
    in one more, or are none any more."""
    checks = {
        "nodeStartupTimeoutSeconds": 3600,
        "unhealthyNodeConditions": [
            {"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")
        ],
        "unhealthyMachineConditions": [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 7200}],
    }
    chosen = {
        "workers": {"matchLabels": {"cluster.x-k8s.io/deployment-name": name}},
        "control-plane": {"matchExpressions": [{"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"}]},
    }
    return [
        _object(
            f"{_CAPI}/v1beta2",
            "MachineHealthCheck",
            f"{name}-{suffix}",
            {"clusterName": name, "selector": selector, "checks": checks},
        )
        for suffix, selector in chosen.items()
    ]


def _object(version: str, kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
