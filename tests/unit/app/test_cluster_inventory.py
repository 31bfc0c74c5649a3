"""What clusterctl finds of ours: labels on definitions, and the inventory of providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import msgspec

from ironbell.api.client import ListOptions, Selector
from ironbell.api.clusterctl import PROVIDER
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.app.admission.definitions import ClusterKinds
from ironbell.app.admission.inventory import list_providers
from ironbell.app.install.manifests import manifests
from ironbell.app.install.options import InstallOptions
from ironbell.app.registry import KINDS
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from ironbell.lab.sim.provider.kinds import KINDS as SIMULATED

ALL = {"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-tinkerbell"}


@asynccontextmanager
async def embedded(without: Collection[str] = ()) -> AsyncIterator[ApiServer]:
    kinds = ClusterKinds(without)
    opened = ApiServer.open(
        None,
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        compile_rule=compile_rule,
        conversions=kinds.conversions,
    )
    async with opened as server:
        kinds.join(server)
        await kinds.define(server)
        yield server


async def listed(server: ApiServer) -> dict[str, tuple[str, str, str]]:
    page = await server.client(ADMIN).list(
        PROVIDER.collection, "", ListOptions(Selector(labels="clusterctl.cluster.x-k8s.io"))
    )
    found = [msgspec.json.decode(item) for item in page.items]
    return {one["metadata"]["name"]: (one["providerName"], one["type"], one["version"]) for one in found}


async def test_the_embedded_api_lists_what_runs() -> None:
    async with embedded() as server:
        found = await listed(server)
    assert set(found) == ALL
    assert found["bootstrap-kubeadm"] == ("kubeadm", "BootstrapProvider", "v1.14.2")
    # its own: `clusterctl move` to a site with upstream's CAPT refuses to move to an older version
    assert found["infrastructure-tinkerbell"] == ("tinkerbell", "InfrastructureProvider", "v0.7.0")


async def test_what_is_left_out_is_not_listed() -> None:
    async with embedded(["kubeadm-bootstrap"]) as server:
        assert set(await listed(server)) == ALL - {"bootstrap-kubeadm"}
        await list_providers(server.client(ADMIN), ["cluster-api"])  # the next start leaves out another
        assert set(await listed(server)) == ALL - {"cluster-api"}


def test_an_installation_lists_what_it_installs() -> None:
    options = InstallOptions(words=("cluster-api", "kubeadm-bootstrap"), namespace="elsewhere")
    found = {
        one["metadata"]["name"]: one["metadata"]["namespace"]
        for one in manifests(options)
        if one["kind"] == PROVIDER.kind
    }
    assert found == {"cluster-api": "elsewhere", "bootstrap-kubeadm": "elsewhere"}
    assert not [one for one in manifests(InstallOptions(words=("rufio",))) if one["kind"] == PROVIDER.kind]


def test_what_moves_with_clusters_has_clusterctls_label() -> None:
    labels = {kind.kind: dict(kind.crd_labels) for kind in (*KINDS, *SIMULATED)}
    moved = {name for name, found in labels.items() if "clusterctl.cluster.x-k8s.io" in found}
    assert {name for name in labels if name not in moved} == {"Template", "Workflow", "WorkflowRuleSet", "Job", "Task"}
    assert "clusterctl.cluster.x-k8s.io/move" in labels["Hardware"]
