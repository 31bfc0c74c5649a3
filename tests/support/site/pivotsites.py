"""A cluster of simulated machines as its management cluster sees it, and pivots that are killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbell.operations.pivot.items import LABEL_COPY
from support.api.kubeapi import KubeApi, connect
from support.capi.site import cluster_documents
from support.capi.topologies import (
    CONFIG_TEMPLATE,
    DEV_CLUSTER_TEMPLATE,
    DEV_MACHINE_TEMPLATE,
    PLANE_TEMPLATE,
    small_class,
    template,
)
from support.waiting import eventually

CORE = "/apis/cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE = "/apis/infrastructure.cluster.x-k8s.io/v1beta2"
TINKERBELL = "/apis/tinkerbell.org/v1alpha1"
NAMESPACE = "default"
UP_S = 180.0
COMMAND_S = 120
PIVOT = (sys.executable, "-m", "ironbell.cli.main", "pivot")


@dataclass(frozen=True)
class Management:
    """One management cluster."""

    kubeconfig: Path

    @property
    def api(self) -> KubeApi:
        return connect("", self.kubeconfig)

    def create(self, name: str = "one", workers: int = 1) -> None:
        """Apply a cluster, once its kinds are there, and wait until it runs."""
        self.apply(cluster_documents(name, workers=workers, vm="0s"))
        self.runs(1 + workers, name)

    def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Apply objects, once their kinds are there."""
        api = self.api
        for document in documents:
            group, _, version = document["apiVersion"].partition("/")
            plurals = {"ClusterClass": "clusterclasses", "Hardware": "hardware"}
            plural = plurals.get(document["kind"], f"{document['kind'].lower()}s")
            path = f"/apis/{group}/{version}/namespaces/{NAMESPACE}/{plural}/{document['metadata']['name']}"
            body = {**document, "metadata": {**document["metadata"], "namespace": NAMESPACE}}

            def applied(path: str = path, body: dict[str, Any] = body) -> bool:
                answer = api.apply(path, body, manager="test")
                assert answer.status in {200, 201}, answer.body
                return True

            eventually(applied, within_s=UP_S)

    def hold(self, name: str) -> None:
        """Add a server that is held."""
        metadata = {"name": name, "annotations": {"ironbell.dev/hold": "fan"}}
        self.apply([{"apiVersion": "tinkerbell.org/v1alpha1", "kind": "Hardware", "metadata": metadata}])

    def held(self) -> dict[str, tuple[str, list[str]]]:
        """Why each server is held, and what keeps it from being deleted."""
        return {
            one["metadata"]["name"]: (
                one["metadata"].get("annotations", {}).get("ironbell.dev/hold", ""),
                one["metadata"].get("finalizers", []),
            )
            for one in self.items(TINKERBELL, "hardware")
        }

    def items(self, prefix: str, plural: str) -> list[dict[str, Any]]:
        answer = self.api.get(f"{prefix}/namespaces/{NAMESPACE}/{plural}")
        if answer.status == 404:
            return []  # not even the kind
        assert answer.status == 200, answer.body
        found: list[dict[str, Any]] = answer.json["items"]
        return found

    def runs(self, machines: int, name: str = "one") -> None:
        """Until the cluster is available, unpaused, with so many Machines, all looked at."""

        def look() -> bool:
            (cluster,) = [one for one in self.items(CORE, "clusters") if one["metadata"]["name"] == name]
            assert not cluster["spec"].get("paused")
            found = [one for one in self.items(CORE, "machines") if one["spec"]["clusterName"] == name]
            states = {
                (one["metadata"]["name"], kind["type"]): kind["status"]
                for one in (cluster, *found)
                for kind in one.get("status", {}).get("conditions", ())
                if kind["type"] in {"Available", "Paused"}
            }
            assert len(found) == machines, [one["metadata"]["name"] for one in found]
            said = [
                f"{one['metadata']['name']} {kind['type']} {kind['status']}: {kind.get('message')}"
                for one in (cluster, *found)
                for kind in one.get("status", {}).get("conditions", ())
            ]
            assert {status for (_, kind), status in states.items() if kind == "Available"} == {"True"}, said
            assert {status for (_, kind), status in states.items() if kind == "Paused"} == {"False"}, said
            return True

        eventually(look, within_s=UP_S)

    def machines(self, name: str = "one") -> dict[str, str]:
        """Provider ids of a cluster's Machines by their names."""
        found = [one for one in self.items(CORE, "machines") if one["spec"]["clusterName"] == name]
        return {one["metadata"]["name"]: one["spec"]["providerID"] for one in found}

    def nodes(self, folder: Path, name: str = "one") -> dict[str, str]:
        """The workload cluster's own nodes: a machine that was installed anew has another uid."""
        ironbell = (sys.executable, "-m", "ironbell.cli.main", "cluster", "kubeconfig", name)
        done = subprocess.run(
            [*ironbell, "--kubeconfig", self.kubeconfig], capture_output=True, check=True, timeout=COMMAND_S
        )
        file = folder / f"{name}.kubeconfig"
        file.touch(mode=0o600)
        file.write_bytes(done.stdout)
        answer = connect("", file).get("/api/v1/nodes")
        assert answer.status == 200, answer.body
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in answer.json["items"]}

    def set_free(self, name: str = "one") -> None:
        """Take the pause of a Cluster away."""
        answer = self.api.patch(f"{CORE}/namespaces/{NAMESPACE}/clusters/{name}", {"spec": {"paused": None}})
        assert answer.status == 200, answer.body

    def remove(self) -> None:
        """Delete the clusters, and wait until nothing is left of them."""
        for one in self.items(CORE, "clusters"):
            answer = self.api.delete(f"{CORE}/namespaces/{NAMESPACE}/clusters/{one['metadata']['name']}")
            assert answer.status == 200, answer.body
        eventually(lambda: not self.left(), seen=self.left, within_s=UP_S)

    def left(self) -> list[str]:
        """Clusters, Machines and their like that are here, and Secrets of clusters."""
        kinds = [(CORE, "clusters"), (CORE, "machines"), (CORE, "machinesets"), (CORE, "machinedeployments")]
        kinds += [(INFRASTRUCTURE, "devclusters"), (INFRASTRUCTURE, "devmachines"), ("/api/v1", "secrets")]
        return [f"{plural}/{one['metadata']['name']}" for prefix, plural in kinds for one in self.items(prefix, plural)]

    def marks(self) -> list[str]:
        """What still says that it is of a pivot; nothing must."""
        kinds = [(CORE, "clusters"), (CORE, "machines"), ("/api/v1", "secrets"), (INFRASTRUCTURE, "devmachines")]
        return [
            one["metadata"]["name"]
            for prefix, plural in kinds
            for one in self.items(prefix, plural)
            if LABEL_COPY in one["metadata"].get("labels", {})
            or any("/pivot" in key for key in one["metadata"].get("annotations", {}))
        ]


def classed_cluster(name: str) -> list[Mapping[str, Any]]:
    """A cluster of a class, of one control plane Machine and one worker."""
    machine = {"backend": {"inMemory": {}}}
    plane = {"kubeadmConfigSpec": {"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}}}
    worker = {"class": "worker", "name": "md-0", "replicas": 1}
    *_templates, class_ = small_class()
    return [
        template(DEV_CLUSTER_TEMPLATE, "small", machine),
        template(PLANE_TEMPLATE, "small", plane),
        *(template(DEV_MACHINE_TEMPLATE, each, machine) for each in ("plane", "worker")),
        template(CONFIG_TEMPLATE, "worker", {"preKubeadmCommands": ["true"]}),
        class_,
        {
            "apiVersion": class_["apiVersion"],
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "topology": {
                    "classRef": {"name": "small"},
                    "version": "v1.34.0",
                    "controlPlane": {"replicas": 1},
                    "workers": {"machineDeployments": [worker]},
                },
            },
        },
    ]


def pivot(source: Management, target: Management, *options: str, status: int = 0) -> str:
    """Run the command to its end; what it has printed."""
    command = [*PIVOT, "--from", source.kubeconfig, "--to", target.kubeconfig, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def killed(source: Management, target: Management, line: int) -> bool:
    """Run the command and kill -9 it when it has told so many steps; whether it had not ended before."""
    return killed_at(line, [*PIVOT, "--from", source.kubeconfig, "--to", target.kubeconfig])


def killed_at(line: int, command: Sequence[str | Path]) -> bool:
    """Run a command and kill -9 it when it has printed so many lines; whether it had not ended before."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for number, _line in enumerate(process.stdout, 1):
            if number == line:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(COMMAND_S)
                return process.returncode == -signal.SIGKILL
        assert process.wait(COMMAND_S) == 0
    return False
