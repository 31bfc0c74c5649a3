"""What a decision on a TinkerbellRemediation depends on, gathered from the cache. No I/O."""

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
from ironbell.controllers.capt.conditions import READY
from ironbell.controllers.capt.host import LIFECYCLE
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.provisioner.lifecycle.created import power_cycle_name
from ironbell.provisioner.lifecycle.names import POWER_CYCLE_TURN, RACK
from ironbell.provisioner.lifecycle.observe import BY_OWNER
from ironbell.provisioner.lifecycle.waves import IN_RACK, NO_WAVE, Wave, work_ended, work_in_rack


def _control_plane_of(machine: Machine) -> list[str]:
    is_one = LABEL_CONTROL_PLANE in machine.metadata.labels
    return [f"{machine.metadata.namespace}/{machine.spec.cluster_name}"] if is_one else []


CONTROL_PLANE: Final = Index(MACHINE, "capt-control-plane", _control_plane_of)
"""Machines of a cluster's control plane."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellRemediation and everything around it."""

    obj: TinkerbellRemediation
    machine: Machine | None = None
    cluster: Cluster | None = None
    tinkerbell_machine: TinkerbellMachine | None = None
    infrastructure: TinkerbellCluster | None = None
    hardware: Hardware | None = None
    """The server that the machine has."""
    job: Job | None = None
    """The power cycle that was made last."""
    peers: tuple[Machine, ...] = ()
    """The other machines of the control plane, if it is of one."""
    wave: Wave = NO_WAVE
    """What goes on in its server's rack."""
    holder: TinkerbellRemediation | None = None
    """Whose turn it is to power cycle a machine of the control plane."""

    @property
    def mark(self) -> str:
        """How the cluster says that it is our turn."""
        return f"{'/'.join(self.obj.key)} {self.obj.metadata.uid}"

    @property
    def is_control_plane(self) -> bool:
        return self.machine is not None and LABEL_CONTROL_PLANE in self.machine.metadata.labels


def gather(cache: Cache, key: Key) -> Observed | None:
    """Everything; None if there is no such remediation."""
    obj = cache.get(TINKERBELL_REMEDIATION, *key)
    if obj is None:
        return None
    namespace = key[0]
    owner = next((one for one in obj.metadata.owner_references if one.kind == MACHINE.kind), None)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    if machine is None or owner is None or machine.metadata.uid != owner.uid:
        return Observed(obj)
    cluster = cache.get(CLUSTER, namespace, machine.spec.cluster_name)
    ours = _tinkerbell_machine(cache, obj)
    infrastructure = None
    if cluster is not None and cluster.spec.infrastructure_ref.kind == TINKERBELL_CLUSTER.kind:
        infrastructure = cache.get(TINKERBELL_CLUSTER, namespace, cluster.spec.infrastructure_ref.name)
    hardware = LIFECYCLE.server_of(cache, ours) if ours is not None else None
    where = hardware.metadata.namespace if hardware is not None else ""
    team = (
        cache.indexed(CONTROL_PLANE, f"{namespace}/{machine.spec.cluster_name}") if _control_plane_of(machine) else ()
    )
    return Observed(
        obj=obj,
        machine=machine,
        cluster=cluster,
        tinkerbell_machine=ours,
        infrastructure=infrastructure,
        hardware=hardware,
        job=cache.get(JOB, where, power_cycle_name(ours)) if ours is not None and hardware is not None else None,
        peers=tuple(one for one in team if one.key != machine.key),
        wave=_wave(cache, obj, ours) if ours is not None else NO_WAVE,
        holder=_holder(cache, infrastructure),
    )


def _holder(cache: Cache, infrastructure: TinkerbellCluster | None) -> TinkerbellRemediation | None:
    """Whose turn it is, as long as that remediation is there."""
    text = infrastructure.metadata.annotations.get(POWER_CYCLE_TURN, "") if infrastructure is not None else ""
    place, _, uid = text.partition(" ")
    namespace, _, name = place.partition("/")
    found = cache.get(TINKERBELL_REMEDIATION, namespace, name) if name else None
    return found if found is not None and found.metadata.uid == uid else None


def _reason(obj: TinkerbellRemediation) -> list[str]:
    ready = find_condition(obj.status.conditions, READY)
    stands = ready is None or is_deleting(obj) or is_true(obj.status.conditions, PAUSED)
    return [ready.reason] if ready is not None and not stands else []


BY_REASON: Final = Index(TINKERBELL_REMEDIATION, "capt-remediation-reason", _reason)
"""Remediations by what they wait for."""


def _wave(cache: Cache, obj: TinkerbellRemediation, ours: TinkerbellMachine) -> Wave:
    """What goes on in a machine's rack, with the power cycles whose Jobs do not exist yet."""
    rack = ours.metadata.annotations.get(RACK, "")
    if not rack or obj.status.phase == RemediationPhase.POWER_CYCLING:
        return NO_WAVE
    counted = [_tinkerbell_machine(cache, other) for other in cache.indexed(BY_REASON, "PowerCycling")]
    without_job = [machine for machine in counted if machine is not None and _lacks_job(cache, machine, rack)]
    return Wave(rack, tuple(work_in_rack(cache, rack).values()), before=len(without_job))


def _lacks_job(cache: Cache, machine: TinkerbellMachine, rack: str) -> bool:
    hardware = LIFECYCLE.server_of(cache, machine) if machine.metadata.annotations.get(RACK) == rack else None
    where = hardware.metadata.namespace if hardware is not None else ""
    return hardware is not None and cache.get(JOB, where, power_cycle_name(machine)) is None


def _tinkerbell_machine(cache: Cache, obj: TinkerbellRemediation) -> TinkerbellMachine | None:
    namespace = obj.metadata.namespace
    owner = next((one for one in obj.metadata.owner_references if one.kind == MACHINE.kind), None)
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
    Watch(WORKFLOW, _waiting_for_turn, work_ended),
    Watch(JOB, _waiting_for_turn, work_ended),
)
INDEXES: Final[Sequence[Index[Any]]] = (CONTROL_PLANE, BY_OWNER, BY_REASON, *IN_RACK)
