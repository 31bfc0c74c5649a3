"""Whole clusters on simulated machines, in virtual time: with the real controllers and real bootstrap data."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ironbell.api.bootstrap import KUBEADM_CONFIG, KUBEADM_CONFIG_TEMPLATE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_SET
from ironbell.api.controlplane import KUBEADM_CONTROL_PLANE
from ironbell.api.core.secret import SECRET
from ironbell.apiserver.store.entry import Change
from ironbell.lab.sim.cluster.host import HostFault, HostPlan
from ironbell.lab.sim.provider.kinds import DEV_CLUSTER, DEV_MACHINE, DEV_MACHINE_TEMPLATE
from ironbell.lab.sim.replay import ReplaySite
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.operations.cluster.template import built_in, objects_of
from support.capi.site import cluster_documents, site
from support.lives.invariants import Invariants
from support.lives.life import Life
from support.lives.many import HASH_SEED, lives
from support.lives.wanted import Pool, Wanted

TEMPLATE = Path(__file__).parents[3] / "docs" / "examples" / "cluster-template.yaml"


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


def running(opened: ReplaySite, count: int, version: str = "v1.34.0") -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        machines = await opened.all(MACHINE)
        good = [one for one in machines if one.status.phase == "Running" and one.spec.version == version]
        return len(good) == len(machines) == count

    return look


async def reached(opened: ReplaySite, is_it: Callable[[], Awaitable[bool]], what: str, within_s: float = 1800) -> None:
    await opened.until(is_it, within_s=within_s, message=lambda: f"not {what}")


def test_a_cluster_is_made_scaled_upgraded_and_leaves_only_templates() -> None:
    async def main() -> None:
        async with site() as opened:
            await opened.apply(cluster_documents(control_planes=1, workers=2))
            await reached(opened, running(opened, 3), "running")

            (cluster,) = await opened.all(CLUSTER)
            assert cluster.status.phase == "Provisioned"
            (control_plane,) = await opened.all(KUBEADM_CONTROL_PLANE)
            conditions = {one.type: one.status for one in control_plane.status.conditions}
            assert conditions["Available"] == conditions["EtcdClusterHealthy"] == "True"

            await opened.apply(cluster_documents(control_planes=3, workers=4))
            await reached(opened, running(opened, 7), "scaled up")
            assert len(opened.cloud.clusters["default", "one"].etcd.members) == 3
            await opened.apply(cluster_documents(control_planes=1, workers=1))
            await reached(opened, running(opened, 2), "scaled down")
            assert len(opened.cloud.clusters["default", "one"].etcd.members) == 1

            await opened.apply(cluster_documents(control_planes=1, workers=1, version="v1.35.1"))
            await reached(opened, running(opened, 2, "v1.35.1"), "upgraded")

            await opened.client.delete(CLUSTER, "default", "one")

            async def gone() -> bool:
                return not await opened.all(CLUSTER)

            await reached(opened, gone, "gone")
            await asyncio.sleep(5)
            kinds = (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, KUBEADM_CONTROL_PLANE, KUBEADM_CONFIG)
            for kind in (*kinds, DEV_CLUSTER, DEV_MACHINE):
                assert await opened.all(kind) == [], kind.kind
            assert [one for one in await opened.all(SECRET) if one.metadata.namespace == "default"] == []
            assert len(await opened.all(DEV_MACHINE_TEMPLATE)) == 2
            assert len(await opened.all(KUBEADM_CONFIG_TEMPLATE)) == 1
            assert not opened.cloud.hosts
            assert not opened.cloud.clusters

    run(main())


def test_three_control_planes_and_ten_workers() -> None:
    async def main() -> None:
        async with site() as opened:
            await opened.apply(cluster_documents(control_planes=3, workers=10))
            await reached(opened, running(opened, 13), "running")
            assert opened.clock.monotonic() < 120

    run(main())


@pytest.mark.parametrize("role", ["control-plane", "md-0"])
def test_a_machine_that_dies_is_replaced_by_its_health_check(role: str) -> None:
    async def main() -> None:
        async with site() as opened:
            await opened.apply(cluster_documents(control_planes=3, workers=2, health_checks=True))
            await reached(opened, running(opened, 5), "running")
            dead = next(host for host in opened.cloud.hosts.values() if host.plan.key[1].startswith(f"one-{role}"))
            await opened.cloud.lose(dead.plan.uid)

            async def replaced() -> bool:
                return dead.plan.uid not in opened.cloud.hosts and await running(opened, 5)()

            await reached(opened, replaced, "replaced", within_s=3600)
            members = {member.name for member in opened.cloud.clusters["default", "one"].etcd.members}
            assert len(members) == 3
            assert dead.state.node not in members

    run(main())


def test_with_external_etcd_a_dead_control_plane_machine_is_replaced() -> None:
    wanted = Wanted("one", 3, [Pool("md-0", 0)], vm_s=2, external_etcd=True, health_checks=True)

    async def main() -> None:
        async with site() as opened:
            life = Life(1)
            life.site, life.invariants, life.wanted = opened, Invariants(opened), [wanted]
            await life.create(wanted)
            await life.converged()
            dead = next(iter(opened.cloud.hosts.values()))
            life.invariants.picture.harm(dead)
            await opened.cloud.lose(dead.plan.uid)
            await life.converged()
            assert dead.plan.uid not in opened.cloud.hosts
            assert opened.cloud.clusters[wanted.key].etcd.members == ()

    run(main())


def test_a_host_that_takes_long_to_boot_is_not_replaced() -> None:
    """The time for a Node to come (half an hour here) runs from when the host is ready."""

    def slow(plan: HostPlan) -> HostFault:
        return HostFault(slow_boot_s=0 if plan.control_plane else 2400)

    async def main() -> None:
        async with site(faults=slow) as opened:
            await opened.apply(cluster_documents(control_planes=1, workers=1, health_checks=True))
            seen: set[str] = set()

            async def up() -> bool:
                seen.update(one.metadata.name for one in await opened.all(MACHINE))
                return await running(opened, 2)()

            await reached(opened, up, "running", within_s=3600)
            assert opened.clock.monotonic() > 2400
            assert len(seen) == 2

    run(main())


def test_our_template_has_limits_for_everything_that_could_wait_for_ever() -> None:
    text = TEMPLATE.read_text()
    built = built_in("one", "default", kubernetes_version="v1.34.0", control_planes=1, workers=1)
    documents = objects_of(text, built, source=str(TEMPLATE))

    async def main() -> None:
        async with site() as opened:
            await opened.apply(documents)
            await reached(opened, running(opened, 2), "running")
            for machine in await opened.all(MACHINE):
                limits = machine.spec.deletion
                drain, detach = limits.node_drain_timeout_seconds, limits.node_volume_detach_timeout_seconds
                assert (drain, detach, limits.node_deletion_timeout_seconds) == (900, 900, 300)
            assert len(await opened.all(MACHINE_HEALTH_CHECK)) == 2
            (deployment,) = await opened.all(MACHINE_DEPLOYMENT)
            rolling = deployment.spec.rollout.strategy.rolling_update
            assert (rolling.max_surge, rolling.max_unavailable) == (0, 1)

    run(main())


def test_a_bootstrap_that_fails_is_said_on_the_machine() -> None:
    async def main() -> None:
        fault = HostFault(kubeadm_fails="error execution phase kubelet-start: the disk is full")
        async with site(faults=lambda plan: HostFault() if plan.control_plane else fault) as opened:
            await opened.apply(cluster_documents(control_planes=1, workers=1))

            async def said() -> bool:
                workers = [one for one in await opened.all(MACHINE) if "-md-" in one.metadata.name]
                return any(
                    "the disk is full" in one.message for machine in workers for one in machine.status.conditions
                )

            await reached(opened, said, "said")

    run(main())


def test_a_seed_gives_the_same_run_again() -> None:
    def journal() -> list[tuple[float, str, str, int]]:
        written: list[tuple[float, str, str, int]] = []

        async def main() -> None:
            async with site(7) as opened:

                def note(change: Change) -> None:
                    entry = change.entry
                    written.append((opened.clock.monotonic(), entry.resource, entry.name, entry.version))

                opened.server.context.store.listen(note)
                await opened.apply(cluster_documents(control_planes=1, workers=2))
                await reached(opened, running(opened, 3), "running")

        run(main())
        return written

    journal()  # the first run of a process also makes what later ones share
    first, second = journal(), journal()
    assert first == second
    assert len(first) > 50


@pytest.mark.parametrize(
    ("seeds", "changes"),
    [(25, 1), *(pytest.param(seeds, changes, marks=pytest.mark.soak) for seeds, changes in ((50, 1), (1000, 2)))],
)
def test_lives_with_crashes_and_faults_keep_what_must_hold(
    seeds: int, changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives(monkeypatch, seeds, changes)


@pytest.mark.soak
def test_a_seed_gives_the_same_life_again_in_another_process() -> None:
    def digest() -> str:
        told = subprocess.run(
            [sys.executable, "-m", "support.lives.life", "5", "1"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": HASH_SEED},
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.splitlines()[-1]

    first = digest()
    assert first.startswith("digest ")
    assert digest() == first
