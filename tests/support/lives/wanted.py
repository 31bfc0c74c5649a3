"""What a life wants of its clusters, and the manifests that say so."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.capi.site import JOIN, NAMESPACE

VERSIONS = ("v1.33.4", "v1.34.2", "v1.35.1", "v1.36.0")
DRAIN_S = 600
DOMAINS = ("a", "b", "c")
CLASS = "shared"
INFRA, BOOTSTRAP, PLANE, CORE = (
    "infrastructure.cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "cluster.x-k8s.io",
)
Document = Mapping[str, Any]
_DELETION = {"nodeDrainTimeoutSeconds": DRAIN_S, "nodeDeletionTimeoutSeconds": 0}
_UNHEALTHY = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")]
_CHECKS = {
    "nodeStartupTimeoutSeconds": 1800,
    "unhealthyNodeConditions": _UNHEALTHY,
    "unhealthyMachineConditions": [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1800}],
}


@dataclass
class Pool:
    """A group of workers."""

    name: str
    workers: int
    surge: int = 1
    domain: str = ""
    template: int = 0


@dataclass
class Wanted:
    """One cluster as it is wanted now."""

    name: str
    control_planes: int
    pools: list[Pool]
    vm_s: int
    surge: int = 1
    version: int = 0
    template: int = 0
    marks: int = 0
    """How often labels were changed, which is no reason to replace anything."""
    health_checks: bool = False
    topology: bool = False
    external_etcd: bool = False
    domains: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return (NAMESPACE, self.name)

    @property
    def machines(self) -> int:
        return self.control_planes + sum(pool.workers for pool in self.pools)

    def __str__(self) -> str:
        pools = ", ".join(
            f"{pool.name}: {pool.workers} surge {pool.surge} t{pool.template} {pool.domain}" for pool in self.pools
        )
        about = [name for name in ("health_checks", "topology", "external_etcd", "domains") if getattr(self, name)]
        plane = f"{self.control_planes} control planes surge {self.surge} t{self.template}"
        return f"{self.name} {VERSIONS[self.version]}: {plane}; {pools}; {' '.join(about)} labels {self.marks}"


def draw(rng: random.Random, name: str, *, small: bool) -> Wanted:
    """A cluster to begin with."""
    planes = 1 if small else rng.choice((1, 1, 1, 3, 3, 3, 3, 5))
    domains = rng.random() < 0.3
    pools = [
        Pool(
            f"md-{number}",
            rng.randrange(0, 3),
            rng.choice((0, 1)),
            rng.choice(("", *DOMAINS)) if domains else "",
        )
        for number in range(rng.choice((1, 1, 2)))
    ]
    return Wanted(
        name,
        planes,
        pools,
        vm_s=rng.choice((0, 2, 20, 120)),
        surge=rng.choice((0, 1)) if planes >= 3 else 1,
        health_checks=rng.random() < 0.5,
        topology=rng.random() < 0.25,
        external_etcd=rng.random() < 0.12,
        domains=domains,
    )


def change(rng: random.Random, wanted: Wanted) -> None:
    """Something else is wanted."""
    pool = rng.choice(wanted.pools)
    kinds = ("workers", "workers", "control planes", "version", "version", "template", "surge", "labels")
    match rng.choice(kinds):
        case "workers":
            pool.workers = rng.randrange(0, 4)
        case "control planes":
            sizes = (3, 5) if wanted.surge == 0 else (1, 3, 3, 5)
            wanted.control_planes = rng.choice([size for size in sizes if size != wanted.control_planes])
        case "version":
            wanted.version = min(wanted.version + 1, len(VERSIONS) - 1)
        case "template" if wanted.topology:
            wanted.marks += 1
        case "template":
            if rng.random() < 0.5:
                wanted.template += 1
            else:
                pool.template += 1
        case "surge":
            pool.surge = 1 - pool.surge
            if wanted.control_planes >= 3:
                wanted.surge = 1 - wanted.surge
        case _:
            wanted.marks += 1


def documents(wanted: Wanted) -> Iterator[Document]:
    """All that is to be applied."""
    yield from _classy(wanted) if wanted.topology else _plain(wanted)


def _document(group: str, kind: str, name: str, spec: Mapping[str, Any]) -> Document:
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": meta, "spec": spec}


def _reference(group: str, kind: str, name: str) -> Mapping[str, Any]:
    return {"apiGroup": group, "kind": kind, "name": name}


def _machine_template(wanted: Wanted, name: str) -> Document:
    vm = {"provisioning": {"startupDuration": f"{wanted.vm_s}s"}}
    return _document(INFRA, "DevMachineTemplate", name, {"template": {"spec": {"backend": {"inMemory": {"vm": vm}}}}})


def _infrastructure(wanted: Wanted) -> Mapping[str, Any]:
    domains = [{"name": name, "controlPlane": True} for name in DOMAINS] if wanted.domains else []
    return {"backend": {"inMemory": {"failureDomains": domains} if domains else {}}}


def _config(wanted: Wanted) -> Mapping[str, Any]:
    external = {"endpoints": ["https://192.0.2.1:2379"]} | {
        name: f"/etc/kubernetes/pki/{path}"
        for name, path in (
            ("caFile", "etcd/ca.crt"),
            ("certFile", "apiserver-etcd-client.crt"),
            ("keyFile", "apiserver-etcd-client.key"),
        )
    }
    etcd = {"etcd": {"external": external}} if wanted.external_etcd else {}
    return {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256", **etcd}}


def _labels(wanted: Wanted) -> Mapping[str, str]:
    return {"node.cluster.x-k8s.io/mark": str(wanted.marks)}


def _strategy(surge: int) -> Mapping[str, Any]:
    rolling = {"maxSurge": surge, "maxUnavailable": 1 - surge}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}


def _plane_strategy(surge: int) -> Mapping[str, Any]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}}


def _health_check(wanted: Wanted, name: str, label: str, value: str) -> Document:
    spec = {"clusterName": wanted.name, "selector": {"matchLabels": {label: value}}, "checks": _CHECKS}
    return _document(CORE, "MachineHealthCheck", name, spec)


def _plain(wanted: Wanted) -> Iterator[Document]:
    """Without a class."""
    name = wanted.name
    plane = f"{name}-control-plane"
    if wanted.health_checks:
        yield _health_check(wanted, plane, "cluster.x-k8s.io/control-plane-name", plane)
    yield _document(INFRA, "DevCluster", name, _infrastructure(wanted))
    yield _machine_template(wanted, f"{plane}-{wanted.template}")
    template = _reference(INFRA, "DevMachineTemplate", f"{plane}-{wanted.template}")
    yield _document(
        PLANE,
        "KubeadmControlPlane",
        plane,
        {
            "replicas": wanted.control_planes,
            "version": VERSIONS[wanted.version],
            "rollout": _plane_strategy(wanted.surge),
            "machineTemplate": {
                "metadata": {"labels": _labels(wanted)},
                "spec": {"infrastructureRef": template, "deletion": _DELETION},
            },
            "kubeadmConfigSpec": _config(wanted),
        },
    )
    for pool in wanted.pools:
        yield from _plain_pool(wanted, pool)
    yield _document(
        CORE,
        "Cluster",
        name,
        {
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "controlPlaneRef": _reference(PLANE, "KubeadmControlPlane", plane),
            "infrastructureRef": _reference(INFRA, "DevCluster", name),
        },
    )


def _plain_pool(wanted: Wanted, pool: Pool) -> Iterator[Document]:
    name = f"{wanted.name}-{pool.name}"
    if wanted.health_checks:
        yield _health_check(wanted, name, "cluster.x-k8s.io/deployment-name", name)
    yield _machine_template(wanted, f"{name}-{pool.template}")
    yield _document(BOOTSTRAP, "KubeadmConfigTemplate", name, {"template": {"spec": JOIN}})
    labels = {"cluster.x-k8s.io/cluster-name": wanted.name, "pool": pool.name}
    domain = {"failureDomain": pool.domain} if pool.domain else {}
    yield _document(
        CORE,
        "MachineDeployment",
        name,
        {
            "clusterName": wanted.name,
            "replicas": pool.workers,
            "selector": {"matchLabels": labels},
            "rollout": _strategy(pool.surge),
            "template": {
                "metadata": {"labels": {**labels, **_labels(wanted)}},
                "spec": {
                    "clusterName": wanted.name,
                    "version": VERSIONS[wanted.version],
                    "bootstrap": {"configRef": _reference(BOOTSTRAP, "KubeadmConfigTemplate", name)},
                    "infrastructureRef": _reference(INFRA, "DevMachineTemplate", f"{name}-{pool.template}"),
                    "deletion": _DELETION,
                    **domain,
                },
            },
        },
    )


def _classy(wanted: Wanted) -> Iterator[Document]:
    """With a class of its own."""
    name = f"{wanted.name}-{CLASS}"

    def used(group: str, kind: str, suffix: str = "") -> Mapping[str, Any]:
        template = {"apiVersion": f"{group}/v1beta2", "kind": kind, "name": f"{name}{suffix}"}
        return {"templateRef": template}

    check = {"healthCheck": {"checks": _CHECKS}} if wanted.health_checks else {}
    yield _document(INFRA, "DevClusterTemplate", name, {"template": {"spec": _infrastructure(wanted)}})
    yield _machine_template(wanted, f"{name}-plane")
    yield _machine_template(wanted, f"{name}-worker")
    plane = {"kubeadmConfigSpec": _config(wanted)}
    yield _document(PLANE, "KubeadmControlPlaneTemplate", name, {"template": {"spec": plane}})
    yield _document(BOOTSTRAP, "KubeadmConfigTemplate", name, {"template": {"spec": JOIN}})
    yield _document(
        CORE,
        "ClusterClass",
        name,
        {
            "infrastructure": used(INFRA, "DevClusterTemplate"),
            "controlPlane": {
                **used(PLANE, "KubeadmControlPlaneTemplate"),
                "machineInfrastructure": used(INFRA, "DevMachineTemplate", "-plane"),
                **check,
            },
            "workers": {
                "machineDeployments": [
                    {
                        "class": "worker",
                        "bootstrap": used(BOOTSTRAP, "KubeadmConfigTemplate"),
                        "infrastructure": used(INFRA, "DevMachineTemplate", "-worker"),
                        **check,
                    }
                ]
            },
        },
    )
    pools = [
        {
            "class": "worker",
            "name": pool.name,
            "replicas": pool.workers,
            "rollout": _strategy(pool.surge),
            "deletion": _DELETION,
            "metadata": {"labels": _labels(wanted)},
            **({"failureDomain": pool.domain} if pool.domain else {}),
        }
        for pool in wanted.pools
    ]
    topology = {
        "classRef": {"name": name},
        "version": VERSIONS[wanted.version],
        "controlPlane": {
            "replicas": wanted.control_planes,
            "deletion": _DELETION,
            "metadata": {"labels": _labels(wanted)},
        },
        "workers": {"machineDeployments": pools},
    }
    pods = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}
    yield _document(CORE, "Cluster", wanted.name, {"clusterNetwork": pods, "topology": topology})
