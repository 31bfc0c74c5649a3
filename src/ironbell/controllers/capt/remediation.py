"""TinkerbellRemediation: an unhealthy machine is switched off and on first, and replaced when that does not help.

A machine is not installed again as it is: its bootstrap data was for one use (kubeadm's token has run out, a control
plane's member of etcd is known by its old identity), and Cluster API makes data once for each Machine. So what follows
power cycles is another Machine, which may get the same server, wiped.

Nothing is done to a server that is held or is not the machine's, nor before a health check has said that the Machine
is unhealthy. One machine of a control plane is power cycled at a time, by a conditional write on the TinkerbellCluster,
and none whose member of etcd is well while too few of the others are. Every power cycle is counted before it is made.

Source: kubernetes-sigs/cluster-api: docs/proposals/20191030-machine-health-checking.md (external remediation).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, Job, JobConditionType
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.capt.tinkerbellremediation import RemediationPhase as Phase
from ironbell.api.capt.tinkerbellremediation import ReplaceOn
from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.clusters.bootstrap_failure import CONDITION as BOOTSTRAP_SUCCEEDED
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.controllers.capt.conditions import (
    HEALTH_CHECK_SUCCEEDED,
    OWNER_REMEDIATED,
    READY,
    ask_for_remediation,
    told,
    with_all,
)
from ironbell.controllers.capt.host import OWNERS
from ironbell.controllers.capt.remediation_observed import INDEXES, WATCHES, Observed, gather
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import DONE, Action, Decision, Key, create, delete, do, emit, patch
from ironbell.kube.decision import wait as wait_
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration
from ironbell.provisioner.lifecycle.created import bmc_job, has_ended, is_job, power_cycle_name, why_job_failed
from ironbell.provisioner.lifecycle.names import (
    HOLD_WHEN_RELEASED,
    POWER_CYCLE,
    POWER_CYCLE_ATTEMPTS,
    POWER_CYCLE_TURN,
    RACK,
    REPLACE_ON,
    number,
)
from ironbell.provisioner.lifecycle.owner import Owner
from ironbell.provisioner.lifecycle.waves import LOOK_AGAIN_S

_OVER: Final = frozenset({Phase.REPLACING, Phase.RECOVERED})


@dataclass
class _Progress:
    """The status as it will be; lives for one decision."""

    observed: Observed
    now: datetime
    changes: dict[str, Any] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)

    def status(self) -> Action | None:
        obj = self.observed.obj
        conditions = with_all(obj.status.conditions, self.conditions, self.now)
        new = msgspec.structs.replace(obj.status, conditions=conditions, **self.changes)
        return patches.status_change(TINKERBELL_REMEDIATION, obj, obj.status, new)

    def says(self, reason: str, message: str, *, well: bool = False) -> None:
        generation = self.observed.obj.metadata.generation
        self.conditions.append(told(READY, well, reason, message, generation=generation))

    def waits(self, reason: str, message: str, *actions: Action | None, after_s: float | None = None) -> Decision:
        """Say what it waits for; the status is written first, so that what follows is counted."""
        self.says(reason, message)
        return wait_(reason, message, self.status(), *actions, requeue_after_s=after_s)

    def event(self, reason: str, message: str, *, warning: bool = False) -> Action:
        return emit(TINKERBELL_REMEDIATION, self.observed.obj, reason=reason, message=message, warning=warning)


@dataclass(frozen=True)
class TinkerbellRemediationReconciler:
    """Power cycles unhealthy machines, and has them replaced."""

    at_once: int = INSTALLS_PER_RACK
    """How many servers of a rack are powered on at the same time; 0 is no bound."""
    name: str = "capt-remediation"
    declaration: ClassVar[Declaration[Any]] = Declaration(
        TINKERBELL_REMEDIATION,
        watches=WATCHES,
        indexes=INDEXES,
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return gather(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, machine = observed.obj, observed.machine
        if is_deleting(obj):
            return DONE
        progress = _Progress(observed, now)
        paused = bool(observed.cluster.spec.paused) if observed.cluster is not None else False
        pause = paused_condition(TINKERBELL_REMEDIATION.kind, obj, cluster_paused=paused)
        progress.conditions.append(pause)
        if is_paused(obj, cluster_paused=paused):
            return wait_("Paused", pause.message, progress.status())
        if machine is None:
            return progress.waits("WaitingForOwner", "no owner reference names a Machine that exists")
        if is_deleting(machine):
            return progress.waits("MachineDeleting", f"Machine {machine.metadata.name} goes")
        if not _is_unhealthy(machine):
            return _well(progress, observed)
        if obj.status.phase == Phase.REPLACING:
            return _replaces(progress, machine)
        return _remedy(progress, observed, machine, observed.wave.waits(self.at_once, now))


def _is_unhealthy(machine: Machine) -> bool:
    found = find_condition(machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
    return found is not None and found.status == "False"


def _well(progress: _Progress, observed: Observed) -> Decision:
    """The health check takes the remediation away when it has seen the same."""
    if not observed.obj.status.phase:
        return progress.waits("WaitingForHealthCheck", "no health check says that the Machine is unhealthy")
    progress.changes["phase"] = Phase.RECOVERED
    progress.says("Recovered", "the Machine is healthy again", well=True)
    job = observed.job
    done = (
        job is not None
        and observed.tinkerbell_machine is not None
        and Owner(OWNERS, observed.tinkerbell_machine).owns(job)
    )
    news = None
    if observed.obj.status.phase != Phase.RECOVERED:
        news = progress.event("Recovered", "the Machine is healthy again")
    return do(progress.status(), news, delete(JOB, job) if done and job is not None and has_ended(job) else None)


def _remedy(progress: _Progress, observed: Observed, machine: Machine, turn: str) -> Decision:
    """The next step for a Machine that is unhealthy and not given up yet."""
    ours, hardware = observed.tinkerbell_machine, observed.hardware
    if machine.spec.infrastructure_ref.kind != TINKERBELL_MACHINE.kind:
        kind = machine.spec.infrastructure_ref.kind
        return progress.waits("ForeignMachine", f"the Machine is a {kind}, and no TinkerbellMachine")
    if ours is None or hardware is None:
        return _give_up(progress, observed, machine, "the Machine has no server")
    if is_deleting(ours):
        return progress.waits("MachineDeleting", f"TinkerbellMachine {ours.metadata.name} goes")
    held = hardware.metadata.annotations.get(HELD)
    if held is not None:
        message = f"Hardware {hardware.metadata.name} is held ({held}); take the annotation {HELD} off"
        return progress.waits("HardwareHeld", message)
    job = observed.job
    if job is not None and not Owner(OWNERS, ours).owns(job):
        return progress.waits("ForeignJob", f"Job {job.metadata.name} is not this machine's; delete it")
    if observed.obj.status.phase == Phase.POWER_CYCLING:
        return _cycling(progress, observed, ours, hardware)
    if job is not None:
        if is_deleting(job) or not has_ended(job):
            return progress.waits("PowerCycling", f"Job {job.metadata.name} of an earlier attempt is not over")
        return progress.waits("PowerCycling", "an earlier attempt is cleared away", delete(JOB, job))
    return _next(progress, observed, machine, ours, hardware, turn)


def _next(
    progress: _Progress, observed: Observed, machine: Machine, ours: TinkerbellMachine, hardware: Hardware, turn: str
) -> Decision:
    """No power cycle is under way: wait for the last one to help, make another, or give up."""
    status, spec = observed.obj.status, observed.obj.spec
    most = number(ours, POWER_CYCLE_ATTEMPTS, number(hardware, POWER_CYCLE_ATTEMPTS, spec.power_cycle.attempts))
    if status.phase == Phase.WAITING_FOR_RECOVERY and status.last_power_cycle:
        waited = (progress.now - parse_rfc3339(status.last_power_cycle)).total_seconds()
        left = spec.power_cycle.timeout_seconds - waited
        if left > 0:
            message = f"power cycle {status.power_cycles} of {most} is done; the Machine may take a while"
            return progress.waits("WaitingForRecovery", message, after_s=left)
    bootstrap = find_condition(ours.status.conditions, BOOTSTRAP_SUCCEEDED)
    if bootstrap is not None and bootstrap.status == "False":
        return _give_up(progress, observed, machine, f"its bootstrap failed: {bootstrap.message}")
    if not ours.status.ready:
        return _give_up(progress, observed, machine, "its operating system was never up")
    if hardware.spec.bmc_ref is None:
        return _give_up(progress, observed, machine, f"Hardware {hardware.metadata.name} has no BMC")
    if status.power_cycles >= most:
        tried = (
            f"{status.power_cycles} power cycles did not help" if status.power_cycles else "power cycles are not tried"
        )
        return _give_up(progress, observed, machine, tried)
    if turn:
        return progress.waits("WaitingForTurn", turn, after_s=LOOK_AGAIN_S)
    if observed.is_control_plane:
        waiting = _turn(progress, observed, machine)
        if waiting is not None:
            return waiting
    progress.changes |= {"phase": Phase.POWER_CYCLING, "power_cycles": status.power_cycles + 1}
    message = f"power cycle {status.power_cycles + 1} of {most} of Hardware {hardware.metadata.name}"
    return progress.waits("PowerCycling", message, progress.event("PowerCycling", message))


def _turn(progress: _Progress, observed: Observed, machine: Machine) -> Decision | None:
    """What a machine of a control plane waits for before it is power cycled; None if it may be."""
    infrastructure, holder = observed.infrastructure, observed.holder
    if infrastructure is None:
        return progress.waits("WaitingForCluster", "the Cluster's infrastructure is no TinkerbellCluster that exists")
    is_ours = infrastructure.metadata.annotations.get(POWER_CYCLE_TURN) == observed.mark
    total = len(observed.peers) + 1
    well, needed = sum(_votes(one) for one in observed.peers), total // 2 + 1
    if total > 1 and _serves(machine) and well < needed:
        message = f"its member of etcd is well, and of the others {well} are; {needed} of {total} must be without it"
        # those that are down may need the turn
        return progress.waits("WaitingForQuorum", message, _mark(infrastructure, None) if is_ours else None)
    if is_ours:
        return None
    if holder is not None and holder.status.phase not in _OVER and not is_deleting(holder):
        message = f"Machine {holder.metadata.name} of the same control plane is being power cycled; one at a time"
        return progress.waits("WaitingForTurn", message)
    return do(_mark(infrastructure, observed.mark))


def _mark(infrastructure: TinkerbellCluster, mark: str | None) -> Action:
    body = {"metadata": {"annotations": {POWER_CYCLE_TURN: mark}}}
    return patch(TINKERBELL_CLUSTER, infrastructure, body, locked=True)


def _serves(machine: Machine) -> bool:
    return is_true(machine.status.conditions, "EtcdMemberHealthy")


def _votes(machine: Machine) -> bool:
    """Whether a machine's member of etcd can be relied on while another one is off."""
    conditions = machine.status.conditions
    return (
        not is_deleting(machine)
        and is_true(conditions, "NodeReady")
        and (find_condition(conditions, "EtcdMemberHealthy") is None or _serves(machine))
    )


def _cycling(progress: _Progress, observed: Observed, ours: TinkerbellMachine, hardware: Hardware) -> Decision:
    """A power cycle was counted: make its Job if there is none, and look at what came of it."""
    attempt, job = f"{observed.obj.metadata.uid} {observed.obj.status.power_cycles}", observed.job
    if job is None:
        return progress.waits("PowerCycling", _message(observed, hardware), create(JOB, _job(ours, hardware, attempt)))
    if is_deleting(job) or job.metadata.annotations.get(POWER_CYCLE) != attempt:
        old = [delete(JOB, job)] if has_ended(job) and not is_deleting(job) else []
        return progress.waits("PowerCycling", f"Job {job.metadata.name} of an earlier attempt is not over", *old)
    if not has_ended(job):
        return progress.waits("PowerCycling", _message(observed, hardware))
    progress.changes |= {"phase": Phase.WAITING_FOR_RECOVERY, "last_power_cycle": rfc3339(progress.now)}
    return progress.waits("WaitingForRecovery", *_outcome(progress, job, hardware), delete(JOB, job))


def _outcome(progress: _Progress, job: Job, hardware: Hardware) -> tuple[str, Action]:
    if is_job(job, JobConditionType.COMPLETED):
        message = f"Hardware {hardware.metadata.name} was switched off and on"
        return message, progress.event("PowerCycled", message)
    message = f"Hardware {hardware.metadata.name} could not be switched off and on: {why_job_failed(job)}"
    return message, progress.event("PowerCycleFailed", message, warning=True)


def _message(observed: Observed, hardware: Hardware) -> str:
    return f"power cycle {observed.obj.status.power_cycles} of Hardware {hardware.metadata.name} is under way"


def _job(ours: TinkerbellMachine, hardware: Hardware, attempt: str) -> dict[str, Any]:
    """Off and on, as two operations: a BMC refuses to cycle a machine that is off."""
    metadata = Owner(OWNERS, ours).metadata(hardware, power_cycle_name(ours))
    spec, rack = bmc_job(hardware, PowerAction.OFF, PowerAction.ON), ours.metadata.annotations.get(RACK)
    annotations = {POWER_CYCLE: attempt, **({RACK: rack} if rack else {})}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _give_up(progress: _Progress, observed: Observed, machine: Machine, why: str) -> Decision:
    """From here on the Machine is its owner's to replace."""
    ours, hardware = observed.tinkerbell_machine, observed.hardware
    hold = None
    if ours is not None and hardware is not None and _replace_on(observed) == ReplaceOn.OTHER:
        text = f"unhealthy as Machine {'/'.join(machine.key)}: {why}"
        if ours.metadata.annotations.get(HOLD_WHEN_RELEASED) is None:
            hold = patch(TINKERBELL_MACHINE, ours, {"metadata": {"annotations": {HOLD_WHEN_RELEASED: text}}})
    progress.changes["phase"] = Phase.REPLACING
    message = f"{why}; the Machine is to be replaced"
    progress.says("Replacing", message)
    # the hold first: once the phase is stored nobody comes here again
    return do(hold, progress.status(), progress.event("Replacing", message, warning=True))


def _replace_on(observed: Observed) -> str:
    for obj in (observed.tinkerbell_machine, observed.hardware):
        said = obj.metadata.annotations.get(REPLACE_ON, "").strip().capitalize() if obj is not None else ""
        if said in tuple(ReplaceOn):
            return said
    return observed.obj.spec.replacement.server


def _replaces(progress: _Progress, machine: Machine) -> Decision:
    """Ask the owner, once; what it answers is in the same condition."""
    if not any(owner.controller for owner in machine.metadata.owner_references):
        message = f"nobody owns Machine {machine.metadata.name} who would replace it; delete it, or repair it"
        return progress.waits("NoOwner", message)
    asked = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if asked is not None and asked.status == "False":
        return progress.waits("Replacing", f"the Machine's owner is to replace it: {asked.message or asked.reason}")
    return progress.waits("Replacing", "the Machine's owner is asked", ask_for_remediation(machine, progress.now))
