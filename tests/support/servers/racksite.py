"""A whole site on virtual time: Cluster API, kubeadm, Tinkerbell and its provider, over the servers of a rack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ironbell.api import bmc, capt, tinkerbell
from ironbell.api.cluster import MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.crd.document import crd_document
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.codec.cel import compile_rule
from ironbell.controllers.capt import controllers as provider
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.manager.controller import Controller
from ironbell.lab.sim.replay import ReplaySite, Surroundings, open_site
from support.capi import site as capisite
from support.servers.rack import NAMESPACE, Rack
from support.servers.rendering import InProcess

_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"


@dataclass
class RackSite:
    """The site and its servers."""

    site: ReplaySite
    rack: Rack

    async def running(self, count: int, *, within_s: float = 3600) -> None:
        """Until so many Machines run, and no others are there."""

        async def look() -> bool:
            phases = await capisite.phases(self.site)
            return len(phases) == count and set(phases.values()) == {"Running"}

        await self.site.until(look, within_s=within_s, message=lambda: f"{count} Machines do not run")

    async def machines(self) -> list[Any]:
        return await self.site.all(MACHINE)


def _nobody_else(_controller: str) -> None:
    return None


@asynccontextmanager
async def rack_site(
    servers: int, seed: int = 1, *, labels: Sequence[Mapping[str, str]] = (), **more: Any
) -> AsyncIterator[RackSite]:
    """A site with so many servers that are off; run it on a `VirtualLoop`. `labels` go round the servers."""
    engine, accesses, racks = InProcess(), [], []

    def build(around: Surroundings) -> list[Controller]:
        async def connect(connection: Any, credentials: Any) -> Any:
            return await racks[0].connect(connection, credentials)

        accesses.append(BmcAccess(around.api, connect))
        return [
            *capisite.controllers(around),
            *tink.controllers(engine, engine.parse, _nobody_else),
            *rufio.controllers(accesses[-1], around.clock, _nobody_else),
            *provider.controllers(
                around.api,
                "http://192.0.2.254:7080",
                _nobody_else,
                workloads=around.workloads,
                connect=around.links,
                **more,
            ),
        ]

    admission = ClusterKinds()
    kinds = [*capisite.kinds(), *(crd_document(kind) for group in (bmc, capt, tinkerbell) for kind in group.KINDS)]
    async with open_site(
        seed, build, kinds=kinds, compile_rule=compile_rule, conversions=admission.conversions, prepare=admission.join
    ) as site:
        rack = Rack(site)
        racks.append(rack)
        site.cloud._read_secret = rack.read_user_data  # cloud-init reads from the metadata service
        metadata = {"namespace": NAMESPACE, "name": "bmc"}
        await site.client.create(SECRET, {"metadata": metadata, "stringData": {"username": "admin", "password": "x"}})
        for number in range(servers):
            told = dict(labels[number % len(labels)]) if labels else {}
            await rack.add(f"s{number:02}", number + 1, labels=told)
        yield RackSite(site, rack)
        for server in rack.servers.values():
            server.end()
        await asyncio.gather(*(access.close() for access in accesses))


def documents(
    name: str = "one",
    *,
    control_planes: int = 1,
    workers: int = 1,
    version: str = "v1.34.0",
    surge: int = 1,
    machine: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    template: str = "",
) -> list[dict[str, Any]]:
    """A cluster on servers as upstream's cluster template has it; `template` ends the names of machine templates."""
    spec = {"bootOptions": {"bootMode": "netboot"}, **(machine or {})}
    made: list[dict[str, Any]] = []
    for document in capisite.cluster_documents(name, control_planes=control_planes, workers=workers, version=version):
        kept = _on_servers(dict(document), spec, dict(cluster or {}), template)
        if kept["kind"] == "KubeadmControlPlane":
            kept["spec"] = {
                **kept["spec"],
                "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}}},
            }
        if kept["kind"] == "MachineDeployment":
            limits = {"maxSurge": surge, "maxUnavailable": 1 - surge}
            kept["spec"] = {**kept["spec"], "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}}
        made.append(kept)
    return made


def _on_servers(
    document: dict[str, Any], machine: dict[str, Any], cluster: dict[str, Any], template: str
) -> dict[str, Any]:
    """The same document with Tinkerbell's kinds in place of the simulated provider's."""
    if document["kind"] == "DevCluster":
        endpoint = {"host": f"{document['metadata']['name']}.{NAMESPACE}.sim", "port": 6443}
        return {
            **document,
            "apiVersion": f"{_INFRASTRUCTURE}/v1beta1",
            "kind": "TinkerbellCluster",
            "spec": {
                "controlPlaneEndpoint": endpoint,
                "imageLookupFormat": "http://192.0.2.254/{{.OSDistro}}-{{.KubernetesVersion}}.raw.gz",
                **cluster,
            },
        }
    if document["kind"] == "DevMachineTemplate":
        metadata = {**document["metadata"], "name": document["metadata"]["name"] + template}
        return {
            **document,
            "metadata": metadata,
            "apiVersion": f"{_INFRASTRUCTURE}/v1beta1",
            "kind": "TinkerbellMachineTemplate",
            "spec": {"template": {"spec": machine}},
        }
    return _renamed(document, template)


def _renamed(value: Any, template: str) -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "DevMachineTemplate":
            return {**value, "kind": "TinkerbellMachineTemplate", "name": value["name"] + template}
        if value.get("kind") == "DevCluster":
            return {**value, "kind": "TinkerbellCluster"}
        return {name: _renamed(inner, template) for name, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(one, template) for one in value]
    return value
