"""Cluster API's controllers on a replayed site, manifests of clusters, and what to look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ironbell.api import addons, bootstrap, cluster, controlplane
from ironbell.api.cluster import MACHINE
from ironbell.api.crd.document import crd_document
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.store.log import Row
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from ironbell.contract.pki import KeyAlgorithm
from ironbell.controllers.capi import controllers as capi
from ironbell.controllers.capi.topology.variables.compiled import VariableSchemas
from ironbell.controllers.kubeadm.controllers import bootstrap_controllers, control_plane_controllers
from ironbell.kube.manager.controller import Controller
from ironbell.lab.sim.provider.kinds import definitions
from ironbell.lab.sim.replay import BuildControllers, ReplaySite, Surroundings, open_site
from ironbell.lab.sim.virtualtime import VirtualClock

NAMESPACE = "default"
_CONTENTS: dict[int, tuple[Row, ...]] = {}
"""By the number of further kinds."""
_ARGS = [{"name": "eviction-hard", "value": "nodefs.available<0%"}]
JOIN = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": _ARGS}}}


def controllers(around: Surroundings) -> list[Controller]:
    """The controllers of Cluster API, under the manager's identity."""
    workloads, api, clock = around.workloads, around.api, around.clock
    return [
        *capi.controllers(workloads, api, clock, _nobody_else, VariableSchemas(), algorithm=KeyAlgorithm.ECDSA_P256),
        *bootstrap_controllers(workloads, api, clock, around.randomness, _nobody_else),
        *control_plane_controllers(workloads, around.etcd_connect, api, clock, _nobody_else),
    ]


def _nobody_else(_controller: str) -> None:
    return None


def kinds() -> list[dict[str, Any]]:
    """The definitions that the controllers need."""
    groups = (cluster, bootstrap, controlplane, addons)
    return [crd_document(kind) for group in groups for kind in group.KINDS]


@asynccontextmanager
async def site(
    seed: int = 1,
    *,
    build: BuildControllers = controllers,
    more_kinds: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> AsyncIterator[ReplaySite]:
    """A site with all of them, and the admission of `core`. What the definitions make of an empty API is kept from one
    site to the next."""
    if len(more_kinds) not in _CONTENTS:
        _CONTENTS[len(more_kinds)] = await _contents(more_kinds)
    admission = ClusterKinds()
    more |= {"conversions": admission.conversions, "prepare": admission.join}
    async with open_site(
        seed, build, kinds=(), compile_rule=compile_rule, contents=_CONTENTS[len(more_kinds)], **more
    ) as opened:
        yield opened


async def _contents(more_kinds: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    clock = VirtualClock(asyncio.get_running_loop())
    documents = [*kinds(), *definitions(), *more_kinds]
    async with ApiServer.open(
        None, clock=clock, randomness=SeededRandomness(0), definitions=documents, compile_rule=compile_rule
    ) as server:
        return server.context.store.contents()


def cluster_documents(
    name: str = "one",
    *,
    control_planes: int = 1,
    workers: int = 1,
    version: str = "v1.34.0",
    vm: str = "10s",
    health_checks: bool = False,
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

    def health_check(suffix: str, label: str, value: str) -> Mapping[str, Any]:
        unhealthy = [{"type": "Ready", "status": status, "timeoutSeconds": 300} for status in ("Unknown", "False")]
        spec = {
            "clusterName": name,
            "selector": {"matchLabels": {label: value}},
            "checks": {"nodeStartupTimeoutSeconds": 1800, "unhealthyNodeConditions": unhealthy},
        }
        return document("cluster.x-k8s.io", "MachineHealthCheck", suffix, spec)

    checks = [
        health_check("-md-0", "cluster.x-k8s.io/deployment-name", f"{name}-md-0"),
        health_check("-control-plane", "cluster.x-k8s.io/control-plane-name", f"{name}-control-plane"),
    ]
    return [
        *(checks if health_checks else []),
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
                        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 0},
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
                        "deletion": {"nodeDrainTimeoutSeconds": 600, "nodeDeletionTimeoutSeconds": 0},
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
