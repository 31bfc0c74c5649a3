"""A Machine of a cluster on a QEMU server, as a person applies it with kubectl, and what is seen of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import MACHINE as OWNER
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.kube.cache.informer import Informer
from support.programs.kubectl import Kubectl
from support.servers.installation import Installation

CLUSTER, MACHINE = "plant", "plant-1"
_INFRASTRUCTURE, _CORE = "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"


def documents(
    image_url: str,
    user_data: str,
    *,
    name: str = CLUSTER,
    cluster: dict[str, Any] | None = None,
    machine: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Cluster, TinkerbellCluster, bootstrap Secret, TinkerbellMachine and Machine; the machine is `<name>-1`.

    `cluster` and `machine` go into the specs of the provider's two; `annotations` are the TinkerbellMachine's.
    """
    its_machine = f"{name}-1"

    def document(group: str, version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        meta = {"name": name, "namespace": "default"}
        return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": meta, "spec": spec}

    def reference(kind: str, name: str) -> dict[str, str]:
        return {"apiGroup": _INFRASTRUCTURE, "kind": kind, "name": name}

    endpoint = {"host": "192.168.77.5", "port": 6443}
    infrastructure = {"controlPlaneEndpoint": endpoint, "imageLookupFormat": image_url, **(cluster or {})}
    of_cluster = {
        "infrastructureRef": reference("TinkerbellCluster", name),
        "controlPlaneEndpoint": infrastructure["controlPlaneEndpoint"],
    }
    data = {"name": f"{its_machine}-bootstrap", "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": data, "stringData": {"value": user_data}}
    spec = {"bootOptions": {"bootMode": "netboot"}, **(machine or {})}
    of_machine = document(_INFRASTRUCTURE, "v1beta1", "TinkerbellMachine", its_machine, spec)
    of_machine["metadata"]["annotations"] = annotations or {}
    owner = {
        "clusterName": name,
        "version": "v1.34.2",
        "bootstrap": {"dataSecretName": data["name"]},
        "infrastructureRef": reference("TinkerbellMachine", its_machine),
    }
    return [
        document(_INFRASTRUCTURE, "v1beta1", "TinkerbellCluster", name, infrastructure),
        document(_CORE, "v1beta2", "Cluster", name, of_cluster),
        secret,
        of_machine,
        document(_CORE, "v1beta2", "Machine", its_machine, owner),
    ]


@dataclass
class CaptMachine:
    """The machine of the cluster: what its TinkerbellMachine has said, and kubectl."""

    seen: Installation
    kubectl: Kubectl
    now: TinkerbellMachine | None = None
    said: list[str] = field(default_factory=list)
    """Messages of its condition Ready, in order."""
    passed_on: list[str] = field(default_factory=list)
    """Messages of the condition InfrastructureReady of its Machine, in order."""
    _known: bool = False

    @property
    def reason(self) -> str:
        """Why it is not Ready; empty if it is, or is not there."""
        conditions = self.now.status.conditions if self.now is not None else []
        return next((one.reason for one in conditions if one.type == "Ready" and one.status != "True"), "")

    @property
    def is_ready(self) -> bool:
        return self.now is not None and self.now.status.ready

    @property
    def is_gone(self) -> bool:
        return self._known and self.now is None

    async def apply(self, *manifests: dict[str, Any]) -> None:
        """kubectl apply."""
        await self.kubectl.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))

    async def get(self, *words: str) -> dict[str, Any]:
        """kubectl get, as JSON."""
        found: dict[str, Any] = json.loads(await self.kubectl.ok("get", *words, "-o", "json"))
        return found

    async def until(self, holds: Callable[[], bool], *, within_s: float, what: str) -> None:
        """As `Installation.until`, and with what the machine said last."""
        try:
            await self.seen.until(holds, within_s=within_s, what=what)
        except BaseException as error:
            error.add_note(f"TinkerbellMachine: {self.said[-8:]}")
            raise

    def changed(self, _old: TinkerbellMachine | None, new: TinkerbellMachine | None) -> None:
        self.now, self._known = new, True
        _note(self.said, new.status.conditions if new is not None else [], "Ready")

    def owner_changed(self, _old: Machine | None, new: Machine | None) -> None:
        _note(self.passed_on, new.status.conditions if new is not None else [], "InfrastructureReady")


def _note(said: list[str], conditions: Sequence[Condition], type_: str) -> None:
    message = next((one.message for one in conditions if one.type == type_), "")
    if message and said[-1:] != [message]:
        said.append(message)


@asynccontextmanager
async def capt_machine(seen: Installation, kubectl: Path, home: Path) -> AsyncIterator[CaptMachine]:
    """Watch the machine for as long as the block lasts."""
    found = CaptMachine(seen, Kubectl(kubectl, seen.site.kubeconfig, home))
    informer, owners = Informer(seen.client.api, TINKERBELL_MACHINE), Informer(seen.client.api, OWNER)
    informer.add_handler(found.changed)
    owners.add_handler(found.owner_changed)
    tasks = [asyncio.create_task(one.run()) for one in (informer, owners)]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
