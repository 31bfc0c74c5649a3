"""The objects that kubeadm creates in a new cluster, and that a kubelet creates for its node.

Source: kubernetes/kubernetes: cmd/kubeadm/app/phases (uploadconfig, kubelet, bootstraptoken, addons, markcontrolplane,
controlplane), pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.kind import Collection
from ironbell.codec import goyaml
from ironbell.kube.decision import Fields
from ironbell.lab.sim.cluster.bootstrap import Kubeadm

CONFIG_MAPS: Final = Collection("", "v1", "configmaps", namespaced=True)
NODES: Final = Collection("", "v1", "nodes", namespaced=False)
PODS: Final = Collection("", "v1", "pods", namespaced=True)
SERVICE_ACCOUNTS: Final = Collection("", "v1", "serviceaccounts", namespaced=True)
SERVICES: Final = Collection("", "v1", "services", namespaced=True)
DEPLOYMENTS: Final = Collection("apps", "v1", "deployments", namespaced=True)
DAEMON_SETS: Final = Collection("apps", "v1", "daemonsets", namespaced=True)
_RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = Collection(_RBAC, "v1", "roles", namespaced=True)
ROLE_BINDINGS: Final = Collection(_RBAC, "v1", "rolebindings", namespaced=True)
CLUSTER_ROLES: Final = Collection(_RBAC, "v1", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Collection(_RBAC, "v1", "clusterrolebindings", namespaced=False)

CRI_SOCKET: Final = "unix:///var/run/containerd/containerd.sock"
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_SYSTEM: Final = "kube-system"
_NODES_GROUP: Final = "system:bootstrappers:kubeadm:default-node-token"
_REGISTRY: Final = "registry.k8s.io"
_COREDNS: Final = "v1.13.1"

Placed = tuple[Collection, Fields]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A kubelet's knowledge of its host."""

    name: str
    provider_id: str
    address: str
    version: str
    control_plane: bool
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    cri_socket: str = CRI_SOCKET


def node(facts: NodeFacts, now: str) -> Fields:
    """The Node that a kubelet registers, with its status."""
    labels = {
        "kubernetes.io/hostname": facts.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **facts.labels,
    }
    if facts.control_plane:
        labels |= {CONTROL_PLANE: "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": facts.name,
            "labels": labels,
            "annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": facts.cri_socket},
        },
        "spec": {
            **({"providerID": facts.provider_id} if facts.provider_id else {}),
            **({"taints": [dict(taint) for taint in facts.taints]} if facts.taints else {}),
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": facts.address},
                {"type": "Hostname", "address": facts.name},
            ],
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": node_conditions(now, ready="True"),
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "6.12.0-simulated",
                "osImage": "Ironbell simulation",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kubeletVersion": facts.version,
                "kubeProxyVersion": facts.version,
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


_REASONS: Final = {
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
}


def node_conditions(now: str, *, ready: str) -> list[Fields]:
    """A node's conditions: as its kubelet reports them, or (`Unknown`) as the cluster sets them when it is silent."""
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    if ready == "Unknown":
        silent = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
        return [{"type": kind, **silent, **times} for kind in (*_REASONS, "Ready")]
    pressures = [
        {"type": kind, "status": "False", "reason": reason, "message": "", **times} for kind, reason in _REASONS.items()
    ]
    reason = "KubeletReady" if ready == "True" else "KubeletNotReady"
    return [*pressures, {"type": "Ready", "status": ready, "reason": reason, "message": "", **times}]


def static_pods(facts: NodeFacts, now: str) -> Iterator[Fields]:
    """Mirror pods of a control plane's static pods, running."""
    for component in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        yield static_pod(component, facts, now)


def static_pod(component: str, facts: NodeFacts, now: str) -> Fields:
    """A mirror pod of one static pod, running."""
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    image = f"{_REGISTRY}/{component}:{facts.version}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{component}-{facts.name}",
            "namespace": _SYSTEM,
            "labels": {"component": component, "tier": "control-plane"},
            "annotations": {
                "kubernetes.io/config.mirror": "simulated",
                "kubernetes.io/config.source": "file",
            },
        },
        "spec": {
            "nodeName": facts.name,
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "containers": [{"name": component, "image": image, "command": [component]}],
        },
        "status": {
            "phase": "Running",
            "podIP": facts.address,
            "startTime": now,
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in conditions],
            "containerStatuses": [
                {
                    "name": component,
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "image": image,
                    "imageID": image,
                    "state": {"running": {"startedAt": now}},
                }
            ],
        },
    }


def cluster_objects(run: Kubeadm, facts: NodeFacts, *, server: str, authority: bytes) -> Iterator[Placed]:
    """The objects that `kubeadm init` creates after the control plane is up, add-ons included."""
    configuration = run.documents.get("ClusterConfiguration", {})
    version = str(configuration.get("kubernetesVersion") or facts.version)
    yield _config_map("kubeadm-config", {"ClusterConfiguration": goyaml.dump(dict(configuration))})
    kubelet = run.documents.get("KubeletConfiguration") or {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
    }
    yield _config_map("kubelet-config", {"kubelet": goyaml.dump(dict(kubelet))})
    yield _config_map("cluster-info", {"kubeconfig": _cluster_info(server, authority)}, namespace="kube-public")
    yield from _roles()
    if not _skipped(run, "addon/kube-proxy"):
        yield from _kube_proxy(run, version)
    if not _skipped(run, "addon/coredns"):
        yield from _coredns(run)


def _skipped(run: Kubeadm, phase: str) -> bool:
    phases = run.documents.get("InitConfiguration", {}).get("skipPhases") or ()
    return phase in phases or phase.partition("/")[0] in phases


def _cluster_info(server: str, authority: bytes) -> str:
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    return goyaml.dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "", "cluster": cluster}],
            "users": [],
            "contexts": [],
        }
    )


def _roles() -> Iterator[Placed]:
    read = ["get"]
    rule: Fields = {"apiGroups": [""], "resources": ["nodes"], "verbs": read}
    yield _placed(CLUSTER_ROLES, "ClusterRole", {"name": "kubeadm:get-nodes"}, rules=[rule])
    yield _cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", _NODES_GROUP)
    yield _cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", _NODES_GROUP)
    csr = "system:certificates.k8s.io:certificatesigningrequests"
    yield _cluster_role_binding("kubeadm:node-autoapprove-bootstrap", f"{csr}:nodeclient", _NODES_GROUP)
    yield _cluster_role_binding(
        "kubeadm:node-autoapprove-certificate-rotation", f"{csr}:selfnodeclient", "system:nodes"
    )
    yield _cluster_role_binding("kubeadm:cluster-admins", "cluster-admin", "kubeadm:cluster-admins")
    for name, namespace, resource, groups in (
        ("kubeadm:nodes-kubeadm-config", _SYSTEM, "kubeadm-config", (_NODES_GROUP, "system:nodes")),
        ("kubeadm:kubelet-config", _SYSTEM, "kubelet-config", (_NODES_GROUP, "system:nodes")),
        ("kubeadm:bootstrap-signer-clusterinfo", "kube-public", "cluster-info", ("system:unauthenticated",)),
    ):
        rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [resource], "verbs": read}
        meta = {"name": name, "namespace": namespace}
        reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
        subjects = [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups]
        yield _placed(ROLES, "Role", meta, rules=[rule])
        yield _placed(ROLE_BINDINGS, "RoleBinding", meta, roleRef=reference, subjects=subjects)


def _kube_proxy(run: Kubeadm, version: str) -> Iterator[Placed]:
    repository = run.section("ClusterConfiguration").get("imageRepository") or _REGISTRY
    labels = {"k8s-app": "kube-proxy"}
    meta = {"name": "kube-proxy", "namespace": _SYSTEM}
    container = {"name": "kube-proxy", "image": f"{repository}/kube-proxy:{version.replace('+', '_')}"}
    yield _placed(SERVICE_ACCOUNTS, "ServiceAccount", meta)
    yield _config_map("kube-proxy", {"config.conf": "kind: KubeProxyConfiguration\n"}, labels={"app": "kube-proxy"})
    pod = {"hostNetwork": True, "serviceAccountName": "kube-proxy", "containers": [container]}
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    yield _placed(DAEMON_SETS, "DaemonSet", {**meta, "labels": labels}, spec=spec)


def _coredns(run: Kubeadm) -> Iterator[Placed]:
    dns = run.section("ClusterConfiguration", "dns")
    general = run.section("ClusterConfiguration").get("imageRepository")
    repository = dns.get("imageRepository") or general or _REGISTRY
    image = "coredns/coredns" if repository == _REGISTRY else "coredns"
    labels = {"k8s-app": "kube-dns"}
    meta = {"name": "coredns", "namespace": _SYSTEM}
    domain = run.section("ClusterConfiguration", "networking").get("dnsDomain") or "cluster.local"
    corefile = f".:53 {{\n    errors\n    health\n    ready\n    kubernetes {domain} in-addr.arpa ip6.arpa\n}}\n"
    yield _placed(SERVICE_ACCOUNTS, "ServiceAccount", meta)
    yield _config_map("coredns", {"Corefile": corefile})
    container = {
        "name": "coredns",
        "image": f"{repository}/{image}:{dns.get('imageTag') or _COREDNS}",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    volume = {
        "name": "config-volume",
        "configMap": {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]},
    }
    pod = {"serviceAccountName": "coredns", "containers": [container], "volumes": [volume]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    yield _placed(DEPLOYMENTS, "Deployment", {**meta, "labels": labels}, spec=spec)
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service_meta = {"name": "kube-dns", "namespace": _SYSTEM, "labels": labels}
    yield _placed(SERVICES, "Service", service_meta, spec={"selector": labels, "ports": ports})


def _placed(where: Collection, kind: str, meta: Fields, **content: Any) -> Placed:
    return where, {"apiVersion": where.api_version, "kind": kind, "metadata": meta, **content}


def _config_map(
    name: str, data: Mapping[str, str], *, namespace: str = _SYSTEM, labels: Mapping[str, str] | None = None
) -> Placed:
    meta: Fields = {"name": name, "namespace": namespace} | ({"labels": dict(labels)} if labels else {})
    return _placed(CONFIG_MAPS, "ConfigMap", meta, data=dict(data))


def _cluster_role_binding(name: str, role: str, group: str) -> Placed:
    reference, subject = (
        {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        {"apiGroup": _RBAC, "kind": "Group", "name": group},
    )
    return _placed(CLUSTER_ROLE_BINDINGS, "ClusterRoleBinding", {"name": name}, roleRef=reference, subjects=[subject])
