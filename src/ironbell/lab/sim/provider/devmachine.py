"""DevMachine: a simulated machine, by the provider contract.

Source: kubernetes-sigs/cluster-api: test/infrastructure/docker/internal/controllers/backends/inmemory/
inmemorymachine_backend.go; docs/book/src/developer/providers/contracts/infra-machine.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial, reduce
from typing import Any, Final

import msgspec

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE, LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE
from ironbell.api.meta import Condition
from ironbell.contract.clusters.bootstrap import BOOTSTRAP_SUCCEEDED
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.kube import finalizers, patches
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import Action, Decision, Effect, Fact, Key, Need, do, patch, wait
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Declaration, Performers, Watch, by_label
from ironbell.lab.sim.cluster.host import HostFault, HostPlan, HostQuery, HostState
from ironbell.lab.sim.provider.kinds import (
    DEV_MACHINE,
    FAULT,
    Address,
    DevMachine,
    DevMachineStatus,
    Initialization,
    Stage,
)
from ironbell.lab.sim.timing import Timing, duration_s
from ironbell.workload.queries import PUSHED_S

FINALIZER: Final = "devmachine.infrastructure.cluster.x-k8s.io"
POWER_ON, RELEASE, LOSE = "power-on", "release", "lose"
NAME: Final = "simulation-devmachine"
_SLOW_S = 600.0
_BY_CLUSTER = by_label(DEV_MACHINE, LABEL_CLUSTER_NAME)
_NOT_POWERED = HostState()


@dataclass(frozen=True, slots=True)
class Release:
    """Power off and wipe."""

    uid: str


@dataclass(frozen=True, slots=True)
class Lose:
    """Let the machine die, as by a defect."""

    uid: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A DevMachine, with its Machine and Cluster, and the state of its host."""

    obj: DevMachine
    machine: Machine | None
    cluster: Cluster | None
    host: Fact[HostState | None] | None


class DevMachineReconciler:
    """Powers simulated machines on and off, and reports their state."""

    name = NAME
    declaration = Declaration(
        DEV_MACHINE,
        watches=(
            Watch(MACHINE, lambda machine, _cache: _infrastructure_keys(machine)),
            Watch(
                CLUSTER,
                lambda cluster, cache: [
                    obj.key
                    for obj in cache.indexed(_BY_CLUSTER, cluster.metadata.name)
                    if obj.metadata.namespace == cluster.metadata.namespace
                ],
                relevant=changed(lambda cluster: (cluster.spec.paused, cluster.status.initialization)),
            ),
        ),
        indexes=(_BY_CLUSTER,),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        obj = cache.get(DEV_MACHINE, *key)
        if obj is None:
            return None
        owner = next((owner for owner in obj.metadata.owner_references if owner.kind == MACHINE.kind), None)
        machine = cache.get(MACHINE, key[0], owner.name) if owner is not None else None
        name = machine.spec.cluster_name if machine is not None else obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
        cluster = cache.get(CLUSTER, key[0], name)
        return Observed(obj, machine, cluster, cache.fact(HostQuery(obj.metadata.uid), PUSHED_S))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, machine, cluster = observed.obj, observed.machine, observed.cluster
        cluster_paused = cluster is not None and bool(cluster.spec.paused)
        if finalizers.is_deleting(obj) and not is_paused(obj, cluster_paused=cluster_paused):
            return _deleted(obj)
        if machine is None or cluster is None:
            return wait("WaitingForOwner", "the Machine has not set its owner reference yet")
        pause = paused_condition(DEV_MACHINE.kind, obj, cluster_paused=cluster_paused)
        if is_paused(obj, cluster_paused=cluster_paused):
            status = msgspec.structs.replace(obj.status, conditions=_conditions(obj, [pause], now))
            return wait("Paused", pause.message, patches.status_change(DEV_MACHINE, obj, obj.status, status))
        waiting = _waits_for(machine, cluster)
        if waiting is not None:
            stage = _stage("VMProvisioned", False, *waiting)
            return wait(*waiting, _status(observed, machine, [stage, pause], now))
        needs = [Need(HostQuery(obj.metadata.uid), max_age_s=PUSHED_S)]
        if not finalizers.has_finalizer(obj, FINALIZER):
            return do(finalizers.add_finalizer(DEV_MACHINE, obj, FINALIZER), needs=needs)
        if observed.host is None:
            return wait("WaitingForHost", "waiting for the state of the host", needs=needs)
        if observed.host.value is None:
            query = HostQuery(obj.metadata.uid)
            effect = Effect(POWER_ON, _plan(obj, machine), outdates=(query,))
            return wait("WaitingForStartupTimeout", "the machine is being powered on", effect, needs=needs)
        return _running(observed, machine, pause, needs, now)


def performers(
    power_on: Callable[[HostPlan], None],
    release: Callable[[str], Awaitable[None]],
    lose: Callable[[str], Awaitable[None]],
) -> Performers:
    """The functions that carry out the effects."""

    async def start(plan: HostPlan) -> Sequence[Action]:
        power_on(plan)
        return ()

    async def end(arguments: Release) -> Sequence[Action]:
        await release(arguments.uid)
        return ()

    async def die(arguments: Lose) -> Sequence[Action]:
        await lose(arguments.uid)
        return ()

    return {POWER_ON: start, RELEASE: end, LOSE: die}


def _infrastructure_keys(machine: Machine) -> list[Key]:
    reference = machine.spec.infrastructure_ref
    return [(machine.metadata.namespace, reference.name)] if reference.kind == DEV_MACHINE.kind else []


def _deleted(obj: DevMachine) -> Decision:
    if ANNOTATION_DELETE_FOR_MOVE in obj.metadata.annotations:
        return wait("Moved", "another management cluster has the machine now")
    finalizer = finalizers.remove_finalizer(DEV_MACHINE, obj, FINALIZER)
    return do() if finalizer is None else do(Effect(RELEASE, Release(obj.metadata.uid)), finalizer)


def _waits_for(machine: Machine, cluster: Cluster) -> tuple[str, str] | None:
    """Reason and message, if the machine cannot be powered on yet."""
    if not cluster.status.initialization.infrastructure_provisioned:
        return "WaitingForClusterInfrastructureReady", "waiting for the cluster's infrastructure"
    if machine.spec.bootstrap.data_secret_name:
        return None
    is_control_plane = LABEL_CONTROL_PLANE in machine.metadata.labels
    if not is_control_plane and not cluster.status.initialization.control_plane_initialized:
        return "WaitingForControlPlaneInitialized", "waiting for the first machine of the control plane"
    return "WaitingForBootstrapData", "waiting for the bootstrap data"


def _plan(obj: DevMachine, machine: Machine) -> HostPlan:
    backend = obj.spec.backend.in_memory
    namespace = obj.metadata.namespace
    return HostPlan(
        uid=obj.metadata.uid,
        key=obj.key,
        cluster=(namespace, machine.spec.cluster_name),
        secret=(namespace, machine.spec.bootstrap.data_secret_name or ""),
        version=machine.spec.version,
        control_plane=LABEL_CONTROL_PLANE in machine.metadata.labels,
        provider_id=_provider_id(obj),
        address=_address(obj),
        known=bool(obj.spec.provider_id),
        vm=_timing(backend.vm if backend else None),
        node=_timing(backend.node if backend else None),
        etcd=_timing(backend.etcd if backend else None),
        api_server=_timing(backend.api_server if backend else None),
        fault=_fault(obj),
    )


def _timing(stage: Stage | None) -> Timing:
    if stage is None:
        return Timing()
    try:
        jitter = float(stage.provisioning.startup_jitter or 0)
    except ValueError:
        jitter = 0.0
    return Timing(duration_s(stage.provisioning.startup_duration), jitter)


def _fault(obj: DevMachine) -> HostFault:
    text = obj.metadata.annotations.get(FAULT, "")
    return HostFault(
        never_boots=text == "never-boots",
        slow_boot_s=_SLOW_S if text == "slow" else 0.0,
        kubeadm_fails="the simulation made kubeadm fail" if text == "bootstrap-fails" else "",
    )


def _provider_id(obj: DevMachine) -> str:
    return obj.spec.provider_id or f"in-memory://{obj.metadata.name}"


def _address(obj: DevMachine) -> str:
    """An address of its own, most likely: nothing is sent to it."""
    digest = hashlib.sha256("/".join(obj.key).encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"


def _running(
    observed: Observed, machine: Machine, pause: Condition, needs: Sequence[Need[Any]], now: datetime
) -> Decision:
    """Report the state of a host that is powered on in its object."""
    obj = observed.obj
    host = (observed.host.value if observed.host is not None else None) or _NOT_POWERED
    dies = obj.metadata.annotations.get(FAULT) == "dies" and not host.dead
    effect = Effect(LOSE, Lose(obj.metadata.uid), outdates=(HostQuery(obj.metadata.uid),)) if dies else None
    conditions = [*_stages(host, LABEL_CONTROL_PLANE in machine.metadata.labels), pause]
    named = None
    if host.running and obj.spec.provider_id != _provider_id(obj):
        named = patch(DEV_MACHINE, obj, {"spec": {"providerID": _provider_id(obj)}})
    return do(named, _status(observed, machine, conditions, now, running=host.running), effect, needs=needs)


def _stages(host: HostState, control_plane: bool) -> Iterator[Condition]:
    if not host.running:
        yield _stage("VMProvisioned", False, "WaitingForStartupTimeout", "the machine is starting")
        return
    yield _stage("VMProvisioned", True)
    reason, message = "WaitingForStartupTimeout", "kubeadm has not ended yet"
    if host.error:
        reason, message = "BootstrapFailed", host.error
        yield _stage(BOOTSTRAP_SUCCEEDED, False, reason, message)
    names = ["NodeProvisioned", *(["EtcdProvisioned", "APIServerProvisioned"] if control_plane else [])]
    for name in names:
        yield _stage(name, host.joined, reason, message)


def _stage(name: str, is_provisioned: bool, reason: str = "", message: str = "") -> Condition:
    if is_provisioned:
        return Condition(type=name, status="True", reason="Provisioned")
    return Condition(type=name, status="False", reason=reason, message=message)


def _ready(stages: Sequence[Condition]) -> Condition:
    """The summary of the stages."""
    ignored = ("Paused", BOOTSTRAP_SUCCEEDED)
    lacking = [stage for stage in stages if stage.status != "True" and stage.type not in ignored]
    if not lacking:
        return Condition(type="Ready", status="True", reason="Ready")
    message = "\n".join(f"* {stage.type}: {stage.message}" for stage in lacking)
    return Condition(type="Ready", status="False", reason="NotReady", message=message)


def _status(
    observed: Observed, machine: Machine, stages: Sequence[Condition], now: datetime, *, running: bool = False
) -> Action | None:
    """The status patch. A machine that was provisioned once stays so."""
    obj = observed.obj
    provisioned = running or obj.status.initialization.provisioned or None
    name = obj.metadata.name
    addresses = [Address(type="Hostname", address=name), Address(type="InternalIP", address=_address(obj))]
    status = DevMachineStatus(
        conditions=_conditions(obj, [_ready(stages), *stages], now),
        initialization=Initialization(provisioned=provisioned),
        ready=provisioned,
        addresses=addresses if provisioned else [],
        failure_domain=machine.spec.failure_domain if provisioned else "",
    )
    return patches.status_change(DEV_MACHINE, obj, obj.status, status)


def _conditions(obj: DevMachine, changes: Sequence[Condition], now: datetime) -> list[Any]:
    return reduce(partial(set_condition, now=now), changes, list(obj.status.conditions))
