"""The controller of due complete wipes: ends reservations of deleted Clusters, wipes, and makes the server available.

Only the Hardware's annotation `ironbell.dev/wipe-due` records that a wipe is due; it is removed in the write that
records the proof of the complete wipe and releases the server. Template, Workflow and Job of an attempt have its name
(`WipeDue.run`): objects of an earlier attempt prove nothing, and are deleted first. A wipe that has failed too often
holds the server, and remains due: it starts again once the hold is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.job import JOB, Job, JobConditionType
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.names import ANNOTATION_DELETE_FOR_MOVE
from ironbell.api.meta import Resource, to_builtin
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339, rfc3339, rfc3339_micro
from ironbell.contract.owners import owner_reference
from ironbell.contract.servers.claim import HELD, WIPED, claim_of, release
from ironbell.contract.servers.directory import AGENT_TIMEOUT, KEEP_DISKS
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.contract.servers.restored import hold_reason
from ironbell.contract.servers.wipe_due import WIPE_DUE, WIPE_RUN, WipeDue, wipe_due
from ironbell.kube.decision import DONE, Action, Decision, Fields, Key, create, emit, patch, wait
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.reconciler import Cache, Declaration, Index, Watch
from ironbell.provisioner.deferral import begins_in_s, end_of_reservation
from ironbell.provisioner.disks import (
    DiskCertificate,
    devices_of,
    disk_certificates,
    encoded_certificate,
    has_started,
    is_wiped,
    kept_disks_after_release,
    messages_of,
    unknown_kept_disks,
    unproven_problem,
    wipe_timeout_s,
)
from ironbell.provisioner.lifecycle.created import (
    NETBOOT,
    TERMINAL,
    bmc_job,
    boot_options,
    deletions,
    has_finished,
    is_job,
    job_failure,
    marked_as_own,
    workflow_failure,
    workflow_spec,
)
from ironbell.provisioner.lifecycle.names import (
    DEFAULT_WIPE_ATTEMPTS,
    RACK,
    WIPE,
    WIPE_ATTEMPTS,
    WIPE_TIMEOUT,
    WipePolicy,
    number,
)
from ironbell.provisioner.lifecycle.reserving import RESERVED, end
from ironbell.provisioner.lifecycle.waves import (
    IN_RACK,
    NO_WAVE,
    RECHECK_S,
    Wave,
    rack_of,
    rack_of_work,
    work_finished,
    work_in_rack,
)
from ironbell.provisioner.lifecycle.wiping import WIPE_AGENT_S, agent_patience, wipe_template

POWER_OFF_ATTEMPTS: Final = 3

BY_CLUSTER: Index[Hardware] = Index(
    HARDWARE,
    "due-cluster",
    lambda hardware: [f"{due.namespace}/{due.cluster}"] if (due := wipe_due(hardware)) is not None else [],
)


@dataclass(frozen=True, slots=True)
class DueObserved:
    """A Hardware, the Cluster for which it is reserved, and the objects of its wipe."""

    hardware: Hardware
    cluster: Cluster | None = None
    template: Template | None = None
    workflow: Workflow | None = None
    power_off: Job | None = None
    wave: Wave = NO_WAVE
    """The work in its rack."""

    @property
    def created(self) -> list[Any]:
        """The objects that this controller created for the Hardware."""
        objects: list[Resource | None] = [self.workflow, self.template, self.power_off]
        return [obj for obj in objects if obj is not None and is_of(obj, self.hardware)]


def is_of(created: Resource, hardware: Hardware) -> bool:
    """Return whether an object was created for this Hardware's complete wipe."""
    return WIPE_RUN in created.metadata.annotations and any(
        owner.uid == hardware.metadata.uid for owner in created.metadata.owner_references
    )


def due_name(hardware: Hardware) -> str:
    """Name of the Template and Workflow."""
    return f"{hardware.metadata.name}-complete-wipe"


def power_off_name(hardware: Hardware) -> str:
    """Name of the Job that powers the server off afterwards."""
    return f"{hardware.metadata.name}-complete-wipe-off"


def _of_cluster(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    return [hardware.key for hardware in cache.indexed(BY_CLUSTER, "/".join(cluster.key))]


def _owner_of_created(created: Resource, _cache: Cache) -> Iterable[Key]:
    if WIPE_RUN in created.metadata.annotations:
        for owner in created.metadata.owner_references:
            if owner.kind == HARDWARE.kind:
                yield created.metadata.namespace, owner.name


def _waiting_in_rack(work: Workflow | Job, cache: Cache) -> Iterable[Key]:
    """Servers in the rack of finished work whose wipe may start."""
    rack = rack_of_work(work)
    return [hardware.key for hardware, due in _due_wipes(cache) if rack and _rack(hardware, due) == rack]


def _due_wipes(cache: Cache) -> Iterable[tuple[Hardware, WipeDue]]:
    for hardware in cache.indexed(RESERVED, "reserved"):
        due = wipe_due(hardware)
        if due is not None and due.ended and HELD not in hardware.metadata.annotations:
            yield hardware, due


def _rack(hardware: Hardware, due: WipeDue) -> str:
    return due.rack or rack_of(hardware, "")


def _wave(cache: Cache, hardware: Hardware, own: WipeDue) -> Wave:
    """The wave of a wipe that has not started; wipes that became due earlier precede it."""
    if not (rack := _rack(hardware, own)):
        return NO_WAVE
    begun = work_in_rack(cache, rack)
    begun.pop(hardware.key, None)
    earlier = [
        due.ended_at
        for other, due in _due_wipes(cache)
        if _rack(other, due) == rack
        and (due.ended_at, other.key) < (own.ended_at, hardware.key)
        and cache.get(WORKFLOW, other.metadata.namespace, due_name(other)) is None
    ]
    return Wave(rack, tuple(begun.values()), wipes_before=tuple(earlier))


def _deletion_started(old: Cluster | None, new: Cluster | None) -> bool:
    return old is None or new is None or is_deleting(old) != is_deleting(new)


@dataclass(frozen=True)
class WipeDueReconciler:
    """Carries out complete wipes that are due."""

    at_once: int = INSTALLS_PER_RACK
    """Limit of servers of a rack that are powered on at the same time; 0 for no limit."""
    name: str = "capt-wipe-due"
    declaration = Declaration(
        HARDWARE,
        watches=(
            Watch(CLUSTER, _of_cluster, _deletion_started),
            Watch(WORKFLOW, _owner_of_created),
            Watch(TEMPLATE, _owner_of_created),
            Watch(JOB, _owner_of_created),
            Watch(WORKFLOW, _waiting_in_rack, work_finished),
            Watch(JOB, _waiting_in_rack, work_finished),
        ),
        indexes=(BY_CLUSTER, RESERVED, *IN_RACK),
    )

    def observe(self, cache: Cache, key: Key) -> DueObserved | None:
        hardware = cache.get(HARDWARE, *key)
        if hardware is None:
            return None
        due, namespace = wipe_due(hardware), key[0]
        return DueObserved(
            hardware,
            cache.get(CLUSTER, due.namespace, due.cluster) if due is not None else None,
            cache.get(TEMPLATE, namespace, due_name(hardware)),
            cache.get(WORKFLOW, namespace, due_name(hardware)),
            cache.get(JOB, namespace, power_off_name(hardware)),
            _wave(cache, hardware, due) if due is not None and due.ended else NO_WAVE,
        )

    def decide(self, observed: DueObserved, now: datetime) -> Decision:
        hardware = observed.hardware
        due = wipe_due(hardware)
        if (unsure := hold_reason(hardware)) is not None:
            return wait("HardwareNotConfirmed", unsure) if due is not None else DONE
        if ANNOTATION_DELETE_FOR_MOVE in hardware.metadata.annotations:
            return DONE
        run = due.run if due is not None and due.ended else ""
        stale = [obj for obj in observed.created if obj.metadata.annotations[WIPE_RUN] != run]
        if stale:
            return wait("CleaningUp", "Deleting the objects of an earlier complete wipe.", *deletions(stale))
        if due is None:
            return DONE
        claim = claim_of(hardware)
        if claim is None:
            # Its labels were removed by a user, or by a program that does not know of the due wipe.
            return wait("Reserved", f"Reserving the server for {due}.", release(hardware))
        return _reserved(observed, due, self.at_once, now) if claim.is_reservation else DONE


def _reserved(observed: DueObserved, due: WipeDue, at_once: int, now: datetime) -> Decision:
    hardware = observed.hardware
    if not due.ended:
        reason = end_of_reservation(hardware, due, observed.cluster)
        if not reason:
            return wait("Reserved", f"The server is reserved for {due}; it is wiped completely before others claim it.")
        return wait("ReservationEnded", f"The reservation ends: {reason}.", *end(hardware, due, reason, now))
    if HELD in hardware.metadata.annotations:
        # The timeout of a wipe that has not started runs meanwhile: it is created again afterwards.
        is_begun = observed.workflow is not None and has_started(observed.workflow)
        unbegun = [] if is_begun else deletions(observed.created)
        return wait("HardwareHeld", f"The server is held: {hardware.metadata.annotations[HELD]}", *unbegun)
    if hardware.metadata.annotations.get(WIPE, "").strip().lower() == WipePolicy.NONE and observed.workflow is None:
        message = f"Skipped the due complete wipe: annotation {WIPE} of the Hardware is 'none'."
        return _finished(observed, due, now, False, message, ())
    if (in_s := begins_in_s(due, now)) > 0:
        return wait("WipeDue", f"A complete wipe starts soon: {due.ended}.", requeue_after_s=in_s)
    workflow = observed.workflow
    if workflow is None:
        return _begin(observed, due, observed.wave.waits(at_once, now))
    if not is_of(workflow, hardware):
        return wait("ForeignWorkflow", f"Workflow {workflow.metadata.name} does not belong to this wipe. Delete it.")
    if is_deleting(workflow):
        return wait("CleaningUp", f"Workflow {workflow.metadata.name} is being deleted.")
    if workflow.status.state == WorkflowState.SUCCESS:
        return _succeeded(observed, due, workflow, now)
    if workflow.status.state in TERMINAL:
        return _failed(observed, due, now, workflow_failure(workflow))
    limit_s = number(hardware, WIPE_TIMEOUT, wipe_timeout_s(hardware))
    begun = parse_rfc3339(workflow.metadata.creation_timestamp or rfc3339(now))
    left_s = limit_s - (now - begun).total_seconds()
    if left_s <= 0:
        return _failed(observed, due, now, f"it did not complete within {limit_s} s")
    manual = "" if hardware.spec.bmc_ref is not None else " The server has no BMC: boot it over the network."
    message = f"Wiping the disks completely, because {due.ended}.{manual}"
    return wait("Wiping", message, requeue_after_s=left_s)


def _begin(observed: DueObserved, due: WipeDue, wave_reason: str) -> Decision:
    hardware, name = observed.hardware, due_name(observed.hardware)
    kept = kept_disks_after_release(hardware, due)
    if problem := unknown_kept_disks(hardware, kept):
        event = emit(HARDWARE, hardware, reason="KeepDisksUnknown", message=problem, warning=True)
        return wait("KeepDisksUnknown", problem, event)
    boot = due.boot_options or boot_options(NETBOOT, hardware)
    if observed.template is None:
        limit_s = wipe_timeout_s(hardware)
        text = wipe_template(name, devices_of(hardware), WipePolicy.COMPLETE, limit_s=limit_s, kept=kept)
        metadata = marked_as_own(_metadata(hardware, due, name), hardware, boot)
        write = create(TEMPLATE, {"metadata": metadata, "spec": {"data": text}})
        return wait("Wiping", "Starting the complete wipe.", write)
    if not is_of(observed.template, hardware) or is_deleting(observed.template):
        return wait("ForeignTemplate", f"Template {name} does not belong to this wipe, or is being deleted.")
    if wave_reason:
        return wait("WaitingForTurn", wave_reason, requeue_after_s=RECHECK_S)
    metadata = _metadata(hardware, due, name)
    if rack := _rack(hardware, due):
        metadata["annotations"][RACK] = rack
    metadata["annotations"] |= agent_patience(hardware, number(hardware, AGENT_TIMEOUT, WIPE_AGENT_S))
    if kept:
        metadata["annotations"][KEEP_DISKS] = ",".join(kept)
    help_needed = None
    if hardware.spec.bmc_ref is None:
        message = f"Hardware {'/'.join(hardware.key)} has no BMC. Boot the server over the network to wipe it."
        help_needed = emit(HARDWARE, hardware, reason="WaitingForManualAction", message=message)
    write = create(WORKFLOW, {"metadata": metadata, "spec": workflow_spec(hardware, name, boot)})
    return wait("Wiping", "Starting the complete wipe.", write, help_needed)


def _metadata(hardware: Hardware, due: WipeDue, name: str) -> Fields:
    return {
        "name": name,
        "namespace": hardware.metadata.namespace,
        "annotations": {WIPE_RUN: due.run},
        "ownerReferences": [to_builtin(owner_reference(HARDWARE, hardware, controller=True, block=False))],
    }


def _succeeded(observed: DueObserved, due: WipeDue, workflow: Workflow, now: datetime) -> Decision:
    """Complete the wipe if the agent's report of each disk proves it; then the server is powered off and available."""
    hardware = observed.hardware
    disks = disk_certificates(workflow)
    if problem := unproven_problem(hardware, disks):
        return _failed(observed, due, now, problem)
    powers_off = hardware.spec.bmc_ref is not None and due.power_off_attempt <= POWER_OFF_ATTEMPTS
    if powers_off and (step := _power_off(observed, due)) is not None:
        return step
    return _finished(observed, due, now, is_wiped(devices_of(hardware), disks), messages_of(workflow), disks)


def _power_off(observed: DueObserved, due: WipeDue) -> Decision | None:
    """Power off the server; None once it is off."""
    hardware, job = observed.hardware, observed.power_off
    if job is None:
        metadata = _metadata(hardware, due, power_off_name(hardware))
        write = create(JOB, {"metadata": metadata, "spec": bmc_job(hardware, PowerAction.OFF)})
        return wait("PoweringOff", "Powering off the server.", write)
    if not is_of(job, hardware) or is_deleting(job):
        return wait("PoweringOff", f"Job {job.metadata.name} does not belong to this wipe, or is being deleted.")
    if is_job(job, JobConditionType.COMPLETED):
        return None
    if not has_finished(job):
        return wait("PoweringOff", f"Job {job.metadata.name} is powering off the server.")
    attempt = f"Attempt {due.power_off_attempt} of {POWER_OFF_ATTEMPTS}"
    message = f"{attempt} to power off the server failed: {job_failure(job)}"
    next_attempt = msgspec.structs.replace(due, power_off_attempt=due.power_off_attempt + 1)
    # The Job is deleted first: after a crash in between, it is retried without counting an attempt that was not made.
    event = emit(HARDWARE, hardware, reason="PowerOffFailed", message=message, warning=True)
    return wait("PowerOffFailed", message, *deletions([job]), _record(hardware, next_attempt), event)


def _failed(observed: DueObserved, due: WipeDue, now: datetime, cause: str) -> Decision:
    """Retry with a new Workflow, which boots the server again, or hold the server. The wipe remains due."""
    hardware = observed.hardware
    most = max(number(hardware, WIPE_ATTEMPTS, DEFAULT_WIPE_ATTEMPTS), 1)
    message = f"Attempt {due.attempt} of {most} to wipe the disks completely failed: {cause}"
    if due.attempt < most:
        next_attempt = msgspec.structs.replace(due, attempt=due.attempt + 1)
        event = emit(HARDWARE, hardware, reason="WipeRetried", message=message, warning=True)
        return wait("WipeRetried", f"{message}. Retrying.", _record(hardware, next_attempt), event)
    restarted = msgspec.structs.replace(due, ended_at=rfc3339_micro(now), attempt=1, power_off_attempt=1)
    hold = f"not wiped completely after {due.machine}: {message}. Remove this annotation to try again."
    disks = disk_certificates(observed.workflow) if observed.workflow is not None else []
    certificate = _certificate(due, now, False, message, disks, failed=True)
    annotations = {HELD: hold, WIPE_DUE: restarted.encoded, WIPED: certificate}
    write = patch(HARDWARE, hardware, {"metadata": {"annotations": annotations}}, locked=True)
    return wait("NotWiped", message, write, emit(HARDWARE, hardware, reason="NotWiped", message=message, warning=True))


def _record(hardware: Hardware, due: WipeDue) -> Action:
    return patch(HARDWARE, hardware, {"metadata": {"annotations": {WIPE_DUE: due.encoded}}}, locked=True)


def _finished(
    observed: DueObserved, due: WipeDue, now: datetime, wiped: bool, message: str, disks: Sequence[DiskCertificate]
) -> Decision:
    """The write that records the outcome, removes the due wipe and makes the server available."""
    hardware = observed.hardware
    annotations: dict[str, str | None] = {WIPE_DUE: None, WIPED: _certificate(due, now, wiped, message, disks)}
    if due.power_off_attempt > POWER_OFF_ATTEMPTS:
        annotations[HELD] = "could not be powered off after its complete wipe; it still runs the in-memory OS"
    reason = "Wiped" if wiped else "NotWiped"
    event = emit(HARDWARE, hardware, reason=reason, message=message, warning=not wiped)
    return wait(reason, message, release(hardware, annotations), event)


def _certificate(
    due: WipeDue, now: datetime, wiped: bool, message: str, disks: Sequence[DiskCertificate], *, failed: bool = False
) -> str:
    method = str(WipePolicy.COMPLETE)
    return encoded_certificate(due.machine, due.machine_uid, method, now, wiped, message, disks, failed=failed)
