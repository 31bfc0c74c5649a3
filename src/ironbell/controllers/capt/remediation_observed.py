"""The state that a decision on a TinkerbellRemediation depends on, gathered from the cache. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.capt.tinkerbellremediation import RemediationPhase, TinkerbellRemediation
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.tinkerbell import WORKFLOW
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.workflow import Workflow
from ironbell.contract.clusters.paused import PAUSED
from ironbell.controllers.capt.host import LIFECYCLE
from ironbell.controllers.capt.status import READY
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.provisioner.lifecycle.created import power_cycle_name
from ironbell.provisioner.lifecycle.names import POWER_CYCLE_TURN, RACK
from ironbell.provisioner.lifecycle.observe import BY_OWNER
from ironbell.provisioner.lifecycle.waves import IN_RACK, NO_WAVE, Wave, work_finished, work_in_rack


def _control_plane_of(machine: Machine) -> list[str]:
    is_member = LABEL_CONTROL_PLANE in machine.metadata.labels
    return [f"{machine.metadata.namespace}/{machine.spec.cluster_name}"] if is_member else []


CONTROL_PLANE: Final = Index(MACHINE, "capt-control-plane", _control_plane_of)
"""Machines of a cluster's control plane."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellRemediation and the objects that it depends on."""

    obj: TinkerbellRemediation
    machine: Machine | None = None
    cluster: Cluster | None = None
    tinkerbell_machine: TinkerbellMachine | None = None
    infrastructure: TinkerbellCluster | None = None
    hardware: Hardware | None = None
    """The server of the machine."""
    job: Job | None = None
    """The Job of the last power cycle."""
    peers: tuple[Machine, ...] = ()
    """The other machines of the control plane, if the machine belongs to one."""
    wave: Wave = NO_WAVE
    """Installations and power cycles in the server's rack."""
    holder: TinkerbellRemediation | None = None
    """The remediation that may power cycle a machine of the control plane now."""

    @property
    def mark(self) -> str:
        """Value of the cluster's annotation while this remediation may power cycle."""
        return f"{'/'.join(self.obj.key)} {self.obj.metadata.uid}"

    @property
    def is_control_plane(self) -> bool:
        return self.machine is not None and LABEL_CONTROL_PLANE in self.machine.metadata.labels


def gather(cache: Cache, key: Key) -> Observed | None:
    """Gather the state; None if the remediation does not exist."""
    obj = cache.get(TINKERBELL_REMEDIATION, *key)
    if obj is None:
        return None
    namespace = key[0]
    owner = next((owner for owner in obj.metadata.owner_references if owner.kind == MACHINE.kind), None)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    if machine is None or owner is None or machine.metadata.uid != owner.uid:
        return Observed(obj)
    cluster = cache.get(CLUSTER, namespace, machine.spec.cluster_name)
    infra_machine = _infra_machine(cache, obj)
    infrastructure = None
    if cluster is not None and cluster.spec.infrastructure_ref.kind == TINKERBELL_CLUSTER.kind:
        infrastructure = cache.get(TINKERBELL_CLUSTER, namespace, cluster.spec.infrastructure_ref.name)
    hardware = LIFECYCLE.server_of(cache, infra_machine) if infra_machine is not None else None
    where = hardware.metadata.namespace if hardware is not None else ""
    team = (
        cache.indexed(CONTROL_PLANE, f"{namespace}/{machine.spec.cluster_name}") if _control_plane_of(machine) else ()
    )
    return Observed(
        obj=obj,
        machine=machine,
        cluster=cluster,
        tinkerbell_machine=infra_machine,
        infrastructure=infrastructure,
        hardware=hardware,
        job=cache.get(JOB, where, power_cycle_name(infra_machine))
        if infra_machine is not None and hardware is not None
        else None,
        peers=tuple(peer for peer in team if peer.key != machine.key),
        wave=_wave(cache, obj, infra_machine) if infra_machine is not None else NO_WAVE,
        holder=_holder(cache, infrastructure),
    )


def _holder(cache: Cache, infrastructure: TinkerbellCluster | None) -> TinkerbellRemediation | None:
    """Return the remediation that the cluster's annotation names, if it still exists."""
    text = infrastructure.metadata.annotations.get(POWER_CYCLE_TURN, "") if infrastructure is not None else ""
    place, _, uid = text.partition(" ")
    namespace, _, name = place.partition("/")
    holder = cache.get(TINKERBELL_REMEDIATION, namespace, name) if name else None
    return holder if holder is not None and holder.metadata.uid == uid else None


def _waiting_reason(obj: TinkerbellRemediation) -> list[str]:
    ready = find_condition(obj.status.conditions, READY)
    is_active = not is_deleting(obj) and not is_true(obj.status.conditions, PAUSED)
    return [ready.reason] if ready is not None and is_active else []


BY_REASON: Final = Index(TINKERBELL_REMEDIATION, "capt-remediation-reason", _waiting_reason)
"""Active remediations by the reason of their condition Ready."""


def _wave(cache: Cache, obj: TinkerbellRemediation, infra_machine: TinkerbellMachine) -> Wave:
    """Return the work in a machine's rack, including power cycles whose Jobs do not exist yet."""
    rack = infra_machine.metadata.annotations.get(RACK, "")
    if not rack or obj.status.phase == RemediationPhase.POWER_CYCLING:
        return NO_WAVE
    counted = [_infra_machine(cache, other) for other in cache.indexed(BY_REASON, "PowerCycling")]
    without_job = [machine for machine in counted if machine is not None and _lacks_job(cache, machine, rack)]
    return Wave(rack, tuple(work_in_rack(cache, rack).values()), ahead=len(without_job))


def _lacks_job(cache: Cache, machine: TinkerbellMachine, rack: str) -> bool:
    hardware = LIFECYCLE.server_of(cache, machine) if machine.metadata.annotations.get(RACK) == rack else None
    where = hardware.metadata.namespace if hardware is not None else ""
    return hardware is not None and cache.get(JOB, where, power_cycle_name(machine)) is None


def _infra_machine(cache: Cache, obj: TinkerbellRemediation) -> TinkerbellMachine | None:
    namespace = obj.metadata.namespace
    owner = next((owner for owner in obj.metadata.owner_references if owner.kind == MACHINE.kind), None)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    if machine is None or machine.spec.infrastructure_ref.kind != TINKERBELL_MACHINE.kind:
        return None
    return cache.get(TINKERBELL_MACHINE, namespace, machine.spec.infrastructure_ref.name)


def _waiting_for_turn(_work: Workflow | Job, cache: Cache) -> Iterable[Key]:
    return [obj.key for obj in cache.indexed(BY_REASON, "WaitingForTurn")]


WATCHES: Final[Sequence[Watch[Any]]] = (
    read_by(MACHINE, CONTROL_PLANE),
    read_by(CLUSTER),
    read_by(TINKERBELL_MACHINE),
    read_by(TINKERBELL_CLUSTER),
    read_by(HARDWARE, BY_OWNER),
    read_by(JOB),
    read_by(TINKERBELL_REMEDIATION),
    Watch(WORKFLOW, _waiting_for_turn, work_finished),
    Watch(JOB, _waiting_for_turn, work_finished),
)
INDEXES: Final[Sequence[Index[Any]]] = (CONTROL_PLANE, BY_OWNER, BY_REASON, *IN_RACK)
