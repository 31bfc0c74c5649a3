"""The controller of TinkerbellRemediations: it power cycles an unhealthy machine, and then has it replaced.

A machine is never reinstalled with the same bootstrap data: that is for one use (kubeadm's token has expired, a control
plane's etcd member is known by its old identity), and Cluster API creates it once for each Machine. So after the power
cycles comes another Machine, which may get the same server, wiped.

A server that is held or belongs to another machine is left alone, and so is every server until a MachineHealthCheck
reports its Machine as unhealthy. Machines of a control plane are power cycled one at a time, by a conditional write on
the TinkerbellCluster; a machine with a healthy etcd member only if the others keep quorum. Every power cycle is counted
before its Job is created.

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
from ironbell.contract.clusters.bootstrap import BOOTSTRAP_SUCCEEDED
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.controllers.capt.host import OWNERS
from ironbell.controllers.capt.remediation_observed import INDEXES, WATCHES, Observed, gather
from ironbell.controllers.capt.status import (
    HEALTH_CHECK_SUCCEEDED,
    OWNER_REMEDIATED,
    READY,
    new_condition,
    request_remediation,
    with_all,
)
from ironbell.kube import patches
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import DONE, Action, Decision, Key, create, delete, do, emit, patch
from ironbell.kube.decision import wait as wait_
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration
from ironbell.provisioner.lifecycle.created import bmc_job, has_finished, is_job, job_failure, power_cycle_name
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
from ironbell.provisioner.lifecycle.waves import RECHECK_S

_FINAL_PHASES: Final = frozenset({Phase.REPLACING, Phase.RECOVERED})


@dataclass
class _Progress:
    """The new status, collected during one decision."""

    observed: Observed
    now: datetime
    changes: dict[str, Any] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)

    def status(self) -> Action | None:
        obj = self.observed.obj
        conditions = with_all(obj.status.conditions, self.conditions, self.now)
        new = msgspec.structs.replace(obj.status, conditions=conditions, **self.changes)
        return patches.status_change(TINKERBELL_REMEDIATION, obj, obj.status, new)

    def set_ready(self, reason: str, message: str, *, is_ready: bool = False) -> None:
        generation = self.observed.obj.metadata.generation
        self.conditions.append(new_condition(READY, is_ready, reason, message, generation=generation))

    def waits(self, reason: str, message: str, *actions: Action | None, after_s: float | None = None) -> Decision:
        """Return a decision that records the reason for waiting. The status is written before the actions, so that a
        power cycle is counted before it starts."""
        self.set_ready(reason, message)
        return wait_(reason, message, self.status(), *actions, requeue_after_s=after_s)

    def event(self, reason: str, message: str, *, warning: bool = False) -> Action:
        return emit(TINKERBELL_REMEDIATION, self.observed.obj, reason=reason, message=message, warning=warning)


@dataclass(frozen=True)
class TinkerbellRemediationReconciler:
    """Power cycles unhealthy machines, and requests their replacement."""

    at_once: int = INSTALLS_PER_RACK
    """Maximum number of servers in a rack that are powered on at the same time; 0 means no limit."""
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
            return progress.waits("WaitingForOwner", "No owner reference names an existing Machine.")
        if is_deleting(machine):
            return progress.waits("MachineDeleting", f"Machine {machine.metadata.name} is being deleted.")
        if not _is_unhealthy(machine):
            return _recovered(progress, observed)
        if obj.status.phase == Phase.REPLACING:
            return _replace(progress, machine)
        return _remediate(progress, observed, machine, observed.wave.waits(self.at_once, now))


def _is_unhealthy(machine: Machine) -> bool:
    check = find_condition(machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
    return check is not None and check.status == "False"


def _recovered(progress: _Progress, observed: Observed) -> Decision:
    """Report the recovery. The MachineHealthCheck deletes the remediation once it observes the same."""
    if not observed.obj.status.phase:
        return progress.waits("WaitingForHealthCheck", "No MachineHealthCheck reports the Machine as unhealthy.")
    progress.changes["phase"] = Phase.RECOVERED
    progress.set_ready("Recovered", "The Machine is healthy again.", is_ready=True)
    job = observed.job
    deletes_job = (
        job is not None
        and observed.tinkerbell_machine is not None
        and Owner(OWNERS, observed.tinkerbell_machine).owns(job)
    )
    event = None
    if observed.obj.status.phase != Phase.RECOVERED:
        event = progress.event("Recovered", "The Machine is healthy again.")
    return do(
        progress.status(), event, delete(JOB, job) if deletes_job and job is not None and has_finished(job) else None
    )


def _remediate(progress: _Progress, observed: Observed, machine: Machine, turn: str) -> Decision:
    """Return the next step for a Machine that is unhealthy and not being replaced yet."""
    infra_machine, hardware = observed.tinkerbell_machine, observed.hardware
    if machine.spec.infrastructure_ref.kind != TINKERBELL_MACHINE.kind:
        kind = machine.spec.infrastructure_ref.kind
        return progress.waits("ForeignMachine", f"The Machine's infrastructure is a {kind}, not a TinkerbellMachine.")
    if infra_machine is None or hardware is None:
        return _give_up(progress, observed, machine, "the Machine has no server")
    if is_deleting(infra_machine):
        return progress.waits("MachineDeleting", f"TinkerbellMachine {infra_machine.metadata.name} is being deleted.")
    held = hardware.metadata.annotations.get(HELD)
    if held is not None:
        message = f"Hardware {hardware.metadata.name} is held ({held}). Remove the annotation {HELD}."
        return progress.waits("HardwareHeld", message)
    job = observed.job
    if job is not None and not Owner(OWNERS, infra_machine).owns(job):
        return progress.waits("ForeignJob", f"Job {job.metadata.name} does not belong to this machine. Delete it.")
    if observed.obj.status.phase == Phase.POWER_CYCLING:
        return _cycling(progress, observed, infra_machine, hardware)
    if job is not None:
        if is_deleting(job) or not has_finished(job):
            return progress.waits("PowerCycling", _earlier_attempt(job))
        return progress.waits(
            "PowerCycling", f"Deleting Job {job.metadata.name} of an earlier attempt.", delete(JOB, job)
        )
    return _next(progress, observed, machine, infra_machine, hardware, turn)


def _next(
    progress: _Progress,
    observed: Observed,
    machine: Machine,
    infra_machine: TinkerbellMachine,
    hardware: Hardware,
    turn: str,
) -> Decision:
    """Return the step while no power cycle is in progress: wait for recovery, start a power cycle, or give up."""
    status, spec = observed.obj.status, observed.obj.spec
    most = number(
        infra_machine, POWER_CYCLE_ATTEMPTS, number(hardware, POWER_CYCLE_ATTEMPTS, spec.power_cycle.attempts)
    )
    if status.phase == Phase.WAITING_FOR_RECOVERY and status.last_power_cycle:
        waited = (progress.now - parse_rfc3339(status.last_power_cycle)).total_seconds()
        left = spec.power_cycle.timeout_seconds - waited
        if left > 0:
            message = (
                f"Power cycle {status.power_cycles} of {most} completed. Waiting for the Machine to become healthy."
            )
            return progress.waits("WaitingForRecovery", message, after_s=left)
    bootstrap = find_condition(infra_machine.status.conditions, BOOTSTRAP_SUCCEEDED)
    if bootstrap is not None and bootstrap.status == "False":
        return _give_up(progress, observed, machine, f"the bootstrap failed: {bootstrap.message}")
    if not infra_machine.status.ready:
        return _give_up(progress, observed, machine, "the operating system never started")
    if hardware.spec.bmc_ref is None:
        return _give_up(progress, observed, machine, f"Hardware {hardware.metadata.name} has no BMC")
    if status.power_cycles >= most:
        tried = (
            f"{status.power_cycles} power cycles did not help" if status.power_cycles else "power cycles are disabled"
        )
        return _give_up(progress, observed, machine, tried)
    if turn:
        return progress.waits("WaitingForTurn", turn, after_s=RECHECK_S)
    if observed.is_control_plane:
        waiting = _turn(progress, observed, machine)
        if waiting is not None:
            return waiting
    progress.changes |= {"phase": Phase.POWER_CYCLING, "power_cycles": status.power_cycles + 1}
    message = f"Power cycling Hardware {hardware.metadata.name}: attempt {status.power_cycles + 1} of {most}."
    return progress.waits("PowerCycling", message, progress.event("PowerCycling", message))


def _turn(progress: _Progress, observed: Observed, machine: Machine) -> Decision | None:
    """Return what a machine of a control plane waits for before its power cycle; None if the power cycle may start."""
    infrastructure, holder = observed.infrastructure, observed.holder
    if infrastructure is None:
        return progress.waits("WaitingForCluster", "The Cluster's infrastructure is not an existing TinkerbellCluster.")
    is_holder = infrastructure.metadata.annotations.get(POWER_CYCLE_TURN) == observed.mark
    total = len(observed.peers) + 1
    healthy, needed = sum(_votes(peer) for peer in observed.peers), total // 2 + 1
    if total > 1 and _serves(machine) and healthy < needed:
        message = (
            f"Without this Machine {healthy} of {total} etcd members would be healthy, and {needed} are required. "
            "Waiting for other members to recover."
        )
        # another machine, whose member is unhealthy, may have to be power cycled first
        return progress.waits("WaitingForQuorum", message, _mark_holder(infrastructure, None) if is_holder else None)
    if is_holder:
        return None
    if holder is not None and holder.status.phase not in _FINAL_PHASES and not is_deleting(holder):
        message = (
            f"Machine {holder.metadata.name} of the same control plane is being power cycled. "
            "Machines of a control plane are power cycled one at a time."
        )
        return progress.waits("WaitingForTurn", message)
    return do(_mark_holder(infrastructure, observed.mark))


def _mark_holder(infrastructure: TinkerbellCluster, mark: str | None) -> Action:
    body = {"metadata": {"annotations": {POWER_CYCLE_TURN: mark}}}
    return patch(TINKERBELL_CLUSTER, infrastructure, body, locked=True)


def _serves(machine: Machine) -> bool:
    return is_true(machine.status.conditions, "EtcdMemberHealthy")


def _votes(machine: Machine) -> bool:
    """Return whether a machine's etcd member is expected to vote while another member is powered off."""
    conditions = machine.status.conditions
    return (
        not is_deleting(machine)
        and is_true(conditions, "NodeReady")
        and (find_condition(conditions, "EtcdMemberHealthy") is None or _serves(machine))
    )


def _cycling(progress: _Progress, observed: Observed, infra_machine: TinkerbellMachine, hardware: Hardware) -> Decision:
    """Return the step of a power cycle that was counted: create its Job, or evaluate the Job's result."""
    attempt, job = f"{observed.obj.metadata.uid} {observed.obj.status.power_cycles}", observed.job
    if job is None:
        return progress.waits(
            "PowerCycling", _message(observed, hardware), create(JOB, _job(infra_machine, hardware, attempt))
        )
    if is_deleting(job) or job.metadata.annotations.get(POWER_CYCLE) != attempt:
        old = [delete(JOB, job)] if has_finished(job) and not is_deleting(job) else []
        return progress.waits("PowerCycling", _earlier_attempt(job), *old)
    if not has_finished(job):
        return progress.waits("PowerCycling", _message(observed, hardware))
    progress.changes |= {"phase": Phase.WAITING_FOR_RECOVERY, "last_power_cycle": rfc3339(progress.now)}
    return progress.waits("WaitingForRecovery", *_outcome(progress, job, hardware), delete(JOB, job))


def _earlier_attempt(job: Job) -> str:
    return f"Waiting for Job {job.metadata.name} of an earlier attempt to finish."


def _outcome(progress: _Progress, job: Job, hardware: Hardware) -> tuple[str, Action]:
    if is_job(job, JobConditionType.COMPLETED):
        message = f"Power cycled Hardware {hardware.metadata.name}."
        return message, progress.event("PowerCycled", message)
    message = f"Could not power cycle Hardware {hardware.metadata.name}: {job_failure(job)}"
    return message, progress.event("PowerCycleFailed", message, warning=True)


def _message(observed: Observed, hardware: Hardware) -> str:
    return f"Power cycle {observed.obj.status.power_cycles} of Hardware {hardware.metadata.name} is in progress."


def _job(infra_machine: TinkerbellMachine, hardware: Hardware, attempt: str) -> dict[str, Any]:
    """Return the Job of a power cycle. Off and on are two operations, because a BMC rejects a power cycle of a server
    that is off."""
    metadata = Owner(OWNERS, infra_machine).metadata(hardware, power_cycle_name(infra_machine))
    spec, rack = bmc_job(hardware, PowerAction.OFF, PowerAction.ON), infra_machine.metadata.annotations.get(RACK)
    annotations = {POWER_CYCLE: attempt, **({RACK: rack} if rack else {})}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _give_up(progress: _Progress, observed: Observed, machine: Machine, reason: str) -> Decision:
    """Return the decision after which the Machine is replaced by its owner."""
    infra_machine, hardware = observed.tinkerbell_machine, observed.hardware
    hold = None
    if infra_machine is not None and hardware is not None and _replace_on(observed) == ReplaceOn.OTHER:
        text = f"unhealthy as Machine {'/'.join(machine.key)}: {reason}"
        if infra_machine.metadata.annotations.get(HOLD_WHEN_RELEASED) is None:
            hold = patch(TINKERBELL_MACHINE, infra_machine, {"metadata": {"annotations": {HOLD_WHEN_RELEASED: text}}})
    progress.changes["phase"] = Phase.REPLACING
    message = f"Replacing the Machine: {reason}"
    progress.set_ready("Replacing", message)
    # the hold first: once the phase is stored, this code does not run again
    return do(hold, progress.status(), progress.event("Replacing", message, warning=True))


def _replace_on(observed: Observed) -> str:
    for obj in (observed.tinkerbell_machine, observed.hardware):
        server = obj.metadata.annotations.get(REPLACE_ON, "").strip().capitalize() if obj is not None else ""
        if server in tuple(ReplaceOn):
            return server
    return observed.obj.spec.replacement.server


def _replace(progress: _Progress, machine: Machine) -> Decision:
    """Request the replacement from the owner, once. The owner reports its progress in the same condition."""
    if not any(owner.controller for owner in machine.metadata.owner_references):
        message = f"Machine {machine.metadata.name} has no owner that replaces it. Delete or repair it."
        return progress.waits("NoOwner", message)
    request = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if request is not None and request.status == "False":
        message = f"The Machine's owner replaces it: {request.message or request.reason}"
        return progress.waits("Replacing", message)
    message = "Requesting a replacement from the Machine's owner."
    return progress.waits("Replacing", message, request_remediation(machine, progress.now))
