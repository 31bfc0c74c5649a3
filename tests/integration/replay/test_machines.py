"""Machines of a whole cluster in virtual time: drained under a budget, replaced when lost, left alone when unseen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec

from ironbell.api.client import PatchType
from ironbell.api.cluster import MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK
from ironbell.api.cluster.machine import Machine
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.codec.cel import compile_rule
from ironbell.kube.conditions import find_condition
from ironbell.lab.sim.replay import ReplaySite, open_site
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capi.site import cluster_documents, controllers, kinds

CLUSTER = ("default", "one")
PODS = Collection("", "v1", "pods", namespaced=True)
BUDGETS = Collection("policy", "v1", "poddisruptionbudgets", namespaced=True)


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


@asynccontextmanager
async def cluster(*, workers: int, more: Sequence[dict[str, Any]] = ()) -> AsyncIterator[ReplaySite]:
    """A cluster that runs, with one control plane machine."""
    async with open_site(1, controllers, kinds=kinds(), compile_rule=compile_rule) as opened:
        await opened.apply([*cluster_documents(control_planes=1, workers=workers), *more])
        await until_running(opened, workers + 1)
        yield opened


async def until_running(opened: ReplaySite, count: int, *, without: str = "") -> None:
    async def look() -> bool:
        machines = await opened.all(MACHINE)
        names = [machine.metadata.name for machine in machines]
        return len(machines) == count and without not in names and all(m.status.phase == "Running" for m in machines)

    await opened.until(look, within_s=1800, message=lambda: f"{count} Machines do not run")


async def worker(opened: ReplaySite) -> Machine:
    machines: list[Machine] = await opened.all(MACHINE)
    return next(one for one in machines if "cluster.x-k8s.io/control-plane" not in one.metadata.labels)


def told(machine: Machine, kind: str) -> tuple[str, str, str]:
    found = find_condition(machine.status.conditions, kind)
    assert found is not None
    return (found.status, found.reason, found.message)


def test_a_budget_holds_a_machine_until_it_allows() -> None:
    async def main() -> None:
        async with cluster(workers=2) as opened:
            machine = await worker(opened)
            inside = opened.cloud.clusters[CLUSTER].server.client(ADMIN)
            for name in ("kept", "free"):
                spec = {"nodeName": machine.status.node_ref.name, "containers": [{"name": "c", "image": "i"}]}
                pod = {
                    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec
                }  # fmt: skip
                await inside.create(PODS, "default", msgspec.json.encode(pod))
                ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
                body = msgspec.json.encode(ready)
                await inside.patch(PODS, "default", name, body, patch_type=PatchType.MERGE, subresource="status")
            budget = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "keep"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
            }
            await inside.create(BUDGETS, "default", msgspec.json.encode(budget))
            no_limit = {"spec": {"template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 0}}}}}
            await opened.client.merge_patch(MACHINE_DEPLOYMENT, "default", "one-md-0", body=no_limit)
            await asyncio.sleep(10)
            await opened.client.delete(MACHINE, *machine.key)
            await asyncio.sleep(1800)
            held = await opened.client.get(MACHINE, *machine.key)
            (line,) = told(held, "Deleting")[2].splitlines()[1:]
            assert line.startswith("* Pod default/kept: cannot evict pod as it would violate the pod's disruption")
            assert line.endswith("The disruption budget keep needs 1 healthy pods and has 1 currently")
            assert "since more than 15m, stage: DrainingNode, delay likely due to Pod" in told(held, "Ready")[2]
            assert opened.cloud.named((CLUSTER[0], machine.spec.infrastructure_ref.name)) is not None
            await inside.delete(BUDGETS, "default", "keep")
            await until_running(opened, 3, without=machine.metadata.name)

    run(main())


HEALTH_CHECK = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "MachineHealthCheck",
    "metadata": {"name": "workers", "namespace": "default"},
    "spec": {
        "clusterName": "one",
        "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "one-md-0"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]},
        "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}},
    },
}


def test_a_worker_that_dies_is_replaced_and_one_that_is_not_seen_is_not() -> None:
    async def main() -> None:
        async with cluster(workers=3, more=[HEALTH_CHECK]) as opened:
            there = opened.cloud.clusters[CLUSTER]
            there.set_down(True)
            before = {machine.metadata.uid for machine in await opened.all(MACHINE)}
            await asyncio.sleep(1800)
            unseen = await opened.all(MACHINE)
            assert {machine.metadata.uid for machine in unseen} == before
            assert {told(machine, "NodeHealthy")[1] for machine in unseen} == {"ConnectionDown"}
            assert all(find_condition(one.status.conditions, "OwnerRemediated") is None for one in unseen)
            there.set_down(False)
            await opened.until(lambda: _healthy(opened, 3), within_s=300, message=lambda: "not healthy again")
            machine = await worker(opened)
            host = opened.cloud.named((CLUSTER[0], machine.spec.infrastructure_ref.name))
            assert host is not None
            await opened.cloud.lose(host.plan.uid)
            await until_running(opened, 4, without=machine.metadata.name)
            await opened.until(lambda: _healthy(opened, 3), within_s=60, message=lambda: "not all are healthy")

    run(main())


async def _healthy(opened: ReplaySite, count: int) -> bool:
    (check,) = await opened.all(MACHINE_HEALTH_CHECK)
    return (check.status.expected_machines, check.status.current_healthy) == (count, count)


def test_a_control_plane_is_replaced_before_its_certificates_end() -> None:
    async def main() -> None:
        async with cluster(workers=0) as opened:
            (old,) = await opened.all(MACHINE)
            assert old.status.certificates_expiry_date is not None
            assert old.status.certificates_expiry_date.startswith("2027-01-01")
            there = opened.cloud.clusters[CLUSTER]
            there.certificate_lifetime = timedelta(days=400)
            (plane,) = await opened.all(KUBEADM_CONTROL_PLANE)
            within = {"spec": {"rollout": {"before": {"certificatesExpiryDays": 366}}}}
            await opened.client.merge_patch(KUBEADM_CONTROL_PLANE, *plane.key, body=within)
            await until_running(opened, 1, without=old.metadata.name)

            async def known() -> bool:
                (new,) = await opened.all(MACHINE)
                return (new.status.certificates_expiry_date or "").startswith("2027-02-05")

            await opened.until(known, within_s=60, message=lambda: "it is not known when the new certificates end")

    run(main())
