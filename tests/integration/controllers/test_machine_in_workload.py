"""What the Machine controller reads and does in a workload cluster, against an embedded API with real pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ironbell.api.client import Api, PatchType
from ironbell.api.core.node import NODE
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import SystemClock, parse_rfc3339
from ironbell.base.randomness import SystemRandomness
from ironbell.controllers.capi.machine.drain.pods import NOT_REACHED, Outcome, PodView
from ironbell.controllers.capi.machine.drain.volumes import VolumesOfNode, VolumeView
from ironbell.controllers.capi.machine.evictions import Ledger, PodToEvict, evict
from ironbell.controllers.capi.machine.performers import (
    CORDON,
    DELETE_NODE,
    EVICT,
    PATCH_NODE,
    CordonArguments,
    DeleteNodeArguments,
    EvictArguments,
    NodePatch,
    performers,
)
from ironbell.controllers.capi.machine.queries import (
    Evicted,
    PodsOn,
    UnreadableAttachmentError,
    VolumesOn,
    read_pods,
    read_volumes,
    resolvers,
)
from ironbell.kube.decision import Emit, Key
from ironbell.kube.manager.act import OutOfDate
from ironbell.lab.sim.cluster.eviction import eviction
from ironbell.workload.access import NotConnected
from ironbell.workload.clusterkey import ClusterKey

CLUSTER = ClusterKey("default", "c1", "u1")
PODS = Collection("", "v1", "pods", namespaced=True)
PLURALS = {
    "Namespace": ("", "v1", "namespaces"),
    "Node": ("", "v1", "nodes"),
    "Pod": ("", "v1", "pods"),
    "DaemonSet": ("apps", "v1", "daemonsets"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
    "PersistentVolume": ("", "v1", "persistentvolumes"),
    "VolumeAttachment": ("storage.k8s.io", "v1", "volumeattachments"),
}
CLUSTER_WIDE = ("Namespace", "Node", "PersistentVolume", "VolumeAttachment")


@dataclass
class Workload:
    """A workload cluster."""

    api: Api
    connected: bool = True

    async def of(self, cluster: Key) -> Api:
        if not self.connected:
            raise NotConnected(cluster, last_error="refused")
        return self.api

    async def add(self, kind: str, name: str, *, namespace: str = "shop", **fields: Any) -> dict[str, Any]:
        group, version, plural = PLURALS[kind]
        where = Collection(group, version, plural, kind not in CLUSTER_WIDE)
        at = namespace if where.namespaced else ""
        metadata = {"name": name, **({"namespace": at} if at else {}), **fields.pop("metadata", {})}
        status = fields.pop("status", None)
        body = {"apiVersion": where.api_version, "kind": kind, "metadata": metadata, **fields}
        answer = await self.api.create(where, at, msgspec.json.encode(body))
        if status is not None:
            change = msgspec.json.encode({"status": status})
            answer = await self.api.patch(where, at, name, change, patch_type=PatchType.MERGE, subresource="status")
        found: dict[str, Any] = msgspec.json.decode(answer)
        return found

    async def pod(
        self, name: str, *, node: str = "n1", claims: Sequence[str] = (), ready: bool = True, **metadata: Any
    ) -> PodToEvict:
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
        made = await self.add("Pod", name, metadata=metadata, spec=spec, status=status)
        return PodToEvict("shop", name, made["metadata"]["uid"])

    async def pods(self) -> list[str]:
        return [msgspec.json.decode(body)["metadata"]["name"] for body in (await self.api.list(PODS)).items]


@pytest.fixture
async def workload() -> AsyncIterator[Workload]:
    async with ApiServer.open(None, clock=SystemClock(), randomness=SystemRandomness()) as server:
        api = server.client(ADMIN)
        server.context.actions.register("", "pods", subresource="eviction", action=eviction(api))
        found = Workload(api)
        await found.add("Namespace", "shop", metadata={"labels": {"team": "sales"}})
        await found.add("Node", "n1", spec={"providerID": "p://1"})
        yield found


def daemon_set(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": uid, "controller": True}


async def test_pods_of_a_node_with_all_that_draining_judges_them_by(workload: Workload) -> None:
    template = {"metadata": {"labels": {"d": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    logs = await workload.add("DaemonSet", "logs", spec={"selector": {"matchLabels": {"d": "d"}}, "template": template})
    await workload.pod("web", labels={"app": "web"}, claims=["data"])
    await workload.pod("logs-1", ownerReferences=[daemon_set("logs", logs["metadata"]["uid"])])
    # the garbage collector wants it gone
    await workload.pod("orphan", ownerReferences=[daemon_set("gone", "u")], finalizers=["example.io/hold"])
    await workload.pod("static", annotations={"kubernetes.io/config.mirror": "x"})
    await workload.pod("elsewhere", node="n2")
    await workload.pod("stuck", finalizers=["example.io/hold"])
    await workload.api.delete(PODS, "shop", "stuck")
    found = await read_pods(workload.api, "n1")
    pods = {pod.name: pod for pod in found.pods}
    assert set(pods) == {"web", "logs-1", "orphan", "static", "stuck"}
    assert pods["web"] == PodView("shop", "web", pods["web"].uid, {"app": "web"}, claims=("data",))
    assert [name for name, pod in pods.items() if pod.of_daemon_set] == ["logs-1"]
    assert [name for name, pod in pods.items() if pod.mirror] == ["static"]
    assert pods["stuck"].deletion is not None
    assert pods["web"].deletion is None
    assert found.namespaces["shop"]["team"] == "sales"
    assert (await read_pods(workload.api, "n3")).pods == ()


async def test_more_pods_than_a_page_holds(workload: Workload) -> None:
    for number in range(12):
        await workload.pod(f"p{number}")
    assert len((await read_pods(workload.api, "n1")).pods) == 12


async def test_a_budget_refuses_and_the_others_go(workload: Workload) -> None:
    pods = [await workload.pod(name, labels={"app": name[:3]}) for name in ("web-1", "web-2", "job-1")]
    budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    await workload.add("PodDisruptionBudget", "web", spec=budget)
    outcomes = {outcome.uid: outcome for outcome in await evict(workload.api, pods, SystemClock())}
    assert outcomes[pods[0].uid].error == (
        "Cannot evict pod as it would violate the pod's disruption budget."
        " The disruption budget web needs 2 healthy pods and has 2 currently"
    )
    assert outcomes[pods[2].uid].error == ""
    assert await workload.pods() == ["web-1", "web-2"]


async def test_a_pod_that_is_gone_has_no_outcome(workload: Workload) -> None:
    gone = PodToEvict("shop", "gone", "u")
    assert await evict(workload.api, [gone], SystemClock()) == []


class HastyClock(SystemClock):
    """Every look at it takes six seconds."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        self._looks += 1
        return 6.0 * self._looks


async def test_who_gets_no_turn_within_the_budget_is_told_so(workload: Workload) -> None:
    pods = [await workload.pod(name) for name in ("a", "b")]
    first, second = await evict(workload.api, pods, HastyClock())
    assert (first.error, second.error) == ("", NOT_REACHED)
    assert await workload.pods() == ["b"]


async def test_volumes_of_a_node(workload: Workload) -> None:
    api = workload.api
    assert await read_volumes(api, "n1") == VolumesOfNode()
    claim = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "apiVersion": "v1"}
    csi = {"driver": "disk.io", "volumeHandle": "h1"}
    common = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    await workload.add("PersistentVolume", "pv1", spec={**common, "csi": csi, "claimRef": claim})
    await workload.add("PersistentVolume", "pv2", spec={**common, "hostPath": {"path": "/x"}})
    for name, node, attached in (("a1", "n1", True), ("a2", "n1", False), ("a3", "n2", True)):
        source = {"persistentVolumeName": "pv1"}
        spec = {"attacher": "disk.io", "nodeName": node, "source": source}
        await workload.add("VolumeAttachment", name, spec=spec, status={"attached": attached})
    body = msgspec.json.encode(
        {"status": {"volumesAttached": [{"name": "kubernetes.io/csi/disk.io^h1", "devicePath": ""}]}}
    )
    await api.patch(NODE.collection, "", "n1", body, patch_type=PatchType.MERGE, subresource="status")
    found = await read_volumes(api, "n1")
    assert (found.in_status, found.by_attachment) == (("kubernetes.io/csi/disk.io^h1",), ("pv1",))
    assert found.volumes == (
        VolumeView("pv1", "kubernetes.io/csi/disk.io^h1", "shop/data"),
        VolumeView("pv2"),
    )
    assert await read_volumes(api, "gone") == VolumesOfNode()


async def test_an_attachment_that_names_no_volume_is_named(workload: Workload) -> None:
    inline = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "d", "volumeHandle": "h"},
    }
    spec = {"attacher": "d", "nodeName": "n1", "source": {"inlineVolumeSpec": inline}}
    await workload.add("VolumeAttachment", "odd", spec=spec, status={"attached": True})
    with pytest.raises(UnreadableAttachmentError, match="VolumeAttachment odd"):
        await read_volumes(workload.api, "n1")


async def node(workload: Workload) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(await workload.api.get(NODE.collection, "", "n1"))
    return found


async def test_effects(workload: Workload) -> None:
    ledger, clock = Ledger(), SystemClock()
    does = performers(workload.of, ledger, clock)
    answers = resolvers(workload.of, ledger)
    await does[CORDON](CordonArguments(CLUSTER, "n1"))
    before = await node(workload)
    assert before["spec"]["unschedulable"] is True
    meta = {"resourceVersion": before["metadata"]["resourceVersion"], "uid": before["metadata"]["uid"]}
    change = NodePatch(CLUSTER, "n1", msgspec.json.encode({"metadata": {**meta, "labels": {"a": "b"}}}))
    await does[PATCH_NODE](change)
    assert (await node(workload))["metadata"]["labels"]["a"] == "b"
    with pytest.raises(OutOfDate):
        await does[PATCH_NODE](change)
    pod = await workload.pod("a")
    assert len((await answers[PodsOn](PodsOn(CLUSTER, "n1"))).pods) == 1
    await does[EVICT](EvictArguments(CLUSTER, "n1", (pod,)))
    assert [outcome.error for outcome in await answers[Evicted](Evicted(CLUSTER, "n1"))] == [""]
    assert await answers[VolumesOn](VolumesOn(CLUSTER, "n1")) == VolumesOfNode()
    goes = DeleteNodeArguments(CLUSTER, "n1", ("default", "m1"), "u", None)
    assert list(await does[DELETE_NODE](goes)) == []
    assert (await workload.api.list(NODE.collection)).items == []
    assert await answers[Evicted](Evicted(CLUSTER, "n1")) == ()
    # what is gone is as wanted
    await does[DELETE_NODE](goes)
    await does[CORDON](CordonArguments(CLUSTER, "n1"))


async def test_a_node_is_left_behind_once_its_time_is_over(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ironbell.controllers.capi.machine.performers._DELETE_EVERY_S", 0.01)
    monkeypatch.setattr("ironbell.controllers.capi.machine.performers._DELETE_FOR_S", 0.05)
    workload.connected = False
    does, now = performers(workload.of, Ledger(), SystemClock()), SystemClock().now()
    goes = DeleteNodeArguments(CLUSTER, "n1", ("default", "m1"), "u", now + timedelta(hours=1))
    with pytest.raises(NotConnected):
        await does[DELETE_NODE](goes)
    late = DeleteNodeArguments(CLUSTER, "n1", ("default", "m1"), "u", now - timedelta(seconds=1))
    (event,) = await does[DELETE_NODE](late)
    assert isinstance(event, Emit)
    assert (event.reason, event.type, event.name) == ("FailedDeleteNode", "Warning", "m1")
    assert "Node n1 remains in the cluster" in event.message


def test_the_ledger_forgets_what_is_old() -> None:
    ledger, start = Ledger(), parse_rfc3339("2026-01-01T00:00:00Z")
    ledger.record(CLUSTER, "n1", [Outcome("a", start)])
    ledger.record(CLUSTER, "n1", [Outcome("b", start + timedelta(minutes=9))])
    assert {one.uid for one in ledger.outcomes(CLUSTER, "n1")} == {"a", "b"}
    ledger.record(CLUSTER, "n1", [Outcome("b", start + timedelta(minutes=11), "no")])
    assert ledger.outcomes(CLUSTER, "n1") == (Outcome("b", start + timedelta(minutes=11), "no"),)
