"""The invariants bite: each of these defects of the product, made on purpose, is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.names import FINALIZER_MACHINE_DEPLOYMENT as FINALIZER
from ironbell.controllers.capi import status
from ironbell.controllers.capi.machine.deletion import steps as deletion
from ironbell.controllers.capi.machinedeployment import reconciler as machinedeployment
from ironbell.controllers.capi.machinedeployment.limits import Limits
from ironbell.controllers.kubeadm.controlplane import steps
from ironbell.controllers.kubeadm.controlplane.machines import hook
from ironbell.controllers.kubeadm.controlplane.machines.preflight import PASSED
from ironbell.controllers.kubeadm.controlplane.machines.quorum import EtcdForecast
from ironbell.kube.finalizers import remove_finalizer
from ironbell.lab.sim.virtualtime import VirtualLoop
from support.capi.site import site
from support.lives.invariants import Invariants
from support.lives.life import Life
from support.lives.wanted import Pool, Wanted

Defect = Callable[[pytest.MonkeyPatch], None]


def nothing(_patch: pytest.MonkeyPatch) -> None:
    return None


def no_quorum_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EtcdForecast, "safe", True)
    patch.setattr(steps, "preflight", lambda *_args, **_more: PASSED)


def one_more_than_surge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "scales_up_first", lambda plane: len(plane.machines) < plane.desired + 2)


def one_more_worker(patch: pytest.MonkeyPatch) -> None:
    def limits(*_args: object) -> Limits:
        return Limits("RollingUpdate", 2, 2, 0)

    patch.setattr(machinedeployment, "limits", limits)


def hosts_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deletion, "_is_deleted", lambda *_args: True)


def no_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deletion, "_is_to_be_drained", lambda *_args: False)


def no_finalizer(patch: pytest.MonkeyPatch) -> None:
    def delete(draft: Any, *_more: object) -> None:
        draft.last.append(remove_finalizer(machinedeployment.MACHINE_DEPLOYMENT, draft.obj, FINALIZER))

    patch.setattr(machinedeployment, "_delete", delete)


def member_forgotten(patch: pytest.MonkeyPatch) -> None:
    def release(plane: Any, *_more: object) -> Any:
        going = [m for m in plane.deleting_machines if hook.ANNOTATION_HOOK in m.metadata.annotations]
        return hook.HookStep(hook.Step.RELEASE, going[0]) if going else None

    patch.setattr(hook, "next_step", release)


def pause_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(status, "is_paused", lambda *_args, **_more: False)


@pytest.mark.parametrize(
    ("defect", "seen"),
    [
        (nothing, ""),
        (no_quorum_check, "which leaves 1 of 2 members of etcd"),
        pytest.param(one_more_than_surge, "one-control-plane has 5 Machines, 4 are allowed", marks=pytest.mark.soak),
        (one_more_worker, "one-md-0 has 4 Machines, 3 are allowed"),
        (hosts_not_waited_for, "is gone, and its host is not released"),
        (no_drain, "was released, and its node is not cordoned"),
        (no_finalizer, "MachineDeployment one-md-0 is gone, and Machines are there"),
        pytest.param(member_forgotten, "was released, and is a member of etcd", marks=pytest.mark.soak),
        (pause_ignored, "was made, and the Cluster is paused"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_defect_is_seen(monkeypatch: pytest.MonkeyPatch, defect: Defect, seen: str) -> None:
    planes = 3 if defect in (no_quorum_check, one_more_than_surge, member_forgotten) else 1
    wanted = Wanted("one", planes, [Pool("md-0", 2)], vm_s=2, surge=0 if defect is no_quorum_check else 1)

    async def main() -> list[str]:
        async with site() as opened:
            invariants = Invariants(opened)
            life = Life(0)
            life.wanted, life.site, life.invariants = [wanted], opened, invariants
            await life.create(wanted)
            await life.converged()
            await life.run_pods()
            defect(monkeypatch)
            if defect is no_quorum_check:
                await _power_cut(life)
            if defect is pause_ignored:
                await opened.client.merge_patch(CLUSTER, *wanted.key, body={"spec": {"paused": True}})
                await asyncio.sleep(60)
                wanted.pools[0].workers = 3
            else:
                wanted.version = 1
            await life.apply(wanted)
            if defect is nothing:
                await life.converged()
            else:
                await asyncio.sleep(900)
            await opened.client.delete(CLUSTER, *wanted.key)
            await asyncio.sleep(900)
            return invariants.broken

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        broken = runner.run(main())
    assert any(seen in line for line in broken) if seen else not broken, broken


async def _power_cut(life: Life) -> None:
    host = [one for one in life.site.cloud.hosts.values() if one.plan.control_plane][-1]
    life.invariants.picture.harm(host)
    await life.site.cloud.lose(host.plan.uid)
    await asyncio.sleep(60)
