"""Cluster API's controllers on a replayed site, manifests of clusters, and what to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ironbell.api import addons, bootstrap, cluster, controlplane
from ironbell.api.cluster import MACHINE
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.store.log import Row
from ironbell.codec.cel import compile_rule
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.capi.cluster.cluster import ClusterReconciler
from ironbell.controllers.capi.cluster.kubeconfig import KUBECONFIG, KubeconfigMaker
from ironbell.controllers.capi.machine.evictions import Ledger
from ironbell.controllers.capi.machine.machine import MachineReconciler
from ironbell.controllers.capi.machine.performers import performers as machine_performers
from ironbell.controllers.capi.machine.questions import askers as machine_askers
from ironbell.controllers.capi.machinedeployment.machinedeployment import MachineDeploymentReconciler
from ironbell.controllers.capi.machineset.machineset import MachineSetReconciler
from ironbell.controllers.kubeadm.controllers import bootstrap_controllers, control_plane_controllers
from ironbell.kube.controller import Controller
from ironbell.lab.sim.replay import ReplaySite, Surroundings, open_site
from ironbell.workload.askers import askers as workload_askers

NAMESPACE = "default"
_CONTENTS: list[tuple[Row, ...]] = []
_ARGS = [{"name": "eviction-hard", "value": "nodefs.available<0%"}]
JOIN = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": _ARGS}}}


def controllers(around: Surroundings) -> list[Controller]:
    """The controllers of Cluster API, under the manager's identity."""
    workloads, api = around.workloads, around.api
    ledger = Ledger()
    known, feeds = workload_askers(workloads), (workloads.feed,)
    make_kubeconfig = KubeconfigMaker(api, around.clock, KeyAlgorithm.ECDSA_P256)
    return [
        Controller(ClusterReconciler(), performers={KUBECONFIG: make_kubeconfig}, askers=known, feeds=feeds),
        Controller(MachineSetReconciler()),
        Controller(MachineDeploymentReconciler()),
        Controller(
            MachineReconciler(),
            performers=machine_performers(workloads.api, ledger, around.clock),
            askers={**known, **machine_askers(workloads.api, ledger)},
            feeds=feeds,
        ),
        *bootstrap_controllers(workloads, api, around.clock, around.randomness, _nobody_else),
        *control_plane_controllers(workloads, around.cloud.etcd_connect, api, around.clock, _nobody_else),
    ]


def _nobody_else(_controller: str) -> None:
    return None


def kinds() -> list[dict[str, Any]]:
    """The definitions that the controllers need."""
    groups = (cluster, bootstrap, controlplane, addons)
    return [crd_document(kind) for group in groups for kind in group.KINDS]


@asynccontextmanager
async def site(seed: int = 1, **more: Any) -> AsyncIterator[ReplaySite]:
    """A site with all of them. What the definitions make of an empty API is kept from one site to the next."""
    kept = _CONTENTS[0] if _CONTENTS else ()
    async with open_site(seed, controllers, kinds=kinds(), compile_rule=compile_rule, contents=kept, **more) as opened:
        if not _CONTENTS:
            _CONTENTS.append(opened.server.context.store.contents())
        yield opened


def cluster_documents(
    name: str = "one",
    *,
    control_planes: int = 1,
    workers: int = 1,
    version: str = "v1.34.0",
    vm: str = "10s",
    algorithm: str = "ECDSA-P256",
) -> Sequence[Mapping[str, Any]]:
    """A cluster without a class, in the manner of upstream's quick start, on machines in memory."""
    infrastructure, timing = "infrastructure.cluster.x-k8s.io", {"provisioning": {"startupDuration": vm}}
    machine = {"template": {"spec": {"backend": {"inMemory": {"vm": timing}}}}}

    def document(group: str, kind: str, suffix: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        meta = {"name": f"{name}{suffix}", "namespace": NAMESPACE}
        return {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": meta, "spec": spec}

    def reference(group: str, kind: str, suffix: str) -> Mapping[str, Any]:
        return {"apiGroup": group, "kind": kind, "name": f"{name}{suffix}"}

    labels = {"cluster.x-k8s.io/cluster-name": name}
    bootstrap_group, control_plane_group = "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
    return [
        document(infrastructure, "DevCluster", "", {"backend": {"inMemory": {}}}),
        document(infrastructure, "DevMachineTemplate", "-control-plane", machine),
        document(infrastructure, "DevMachineTemplate", "-md-0", machine),
        document(bootstrap_group, "KubeadmConfigTemplate", "-md-0", {"template": {"spec": JOIN}}),
        document(
            control_plane_group,
            "KubeadmControlPlane",
            "-control-plane",
            {
                "replicas": control_planes,
                "version": version,
                "machineTemplate": {
                    "spec": {
                        "infrastructureRef": reference(infrastructure, "DevMachineTemplate", "-control-plane"),
                        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 10},
                    }
                },
                "kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": algorithm}},
            },
        ),
        document(
            "cluster.x-k8s.io",
            "MachineDeployment",
            "-md-0",
            {
                "clusterName": name,
                "replicas": workers,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "clusterName": name,
                        "version": version,
                        "bootstrap": {"configRef": reference(bootstrap_group, "KubeadmConfigTemplate", "-md-0")},
                        "infrastructureRef": reference(infrastructure, "DevMachineTemplate", "-md-0"),
                        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 10},
                    },
                },
            },
        ),
        document(
            "cluster.x-k8s.io",
            "Cluster",
            "",
            {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "controlPlaneRef": reference(control_plane_group, "KubeadmControlPlane", "-control-plane"),
                "infrastructureRef": reference(infrastructure, "DevCluster", ""),
            },
        ),
    ]


async def phases(opened: ReplaySite) -> dict[str, str]:
    """Machines by name, with their phases."""
    return {machine.metadata.name: machine.status.phase for machine in await opened.all(MACHINE)}
