"""Conditions and status of the provider's objects, and the translation of a step of the server lifecycle. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellcluster import Initialization, TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine, TinkerbellMachineAddress
from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATE_MACHINE
from ironbell.api.meta import Condition, to_builtin
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.clusters.machine_causes import is_health_checked
from ironbell.contract.conditions.legacy import WARNING, legacy_conditions, legacy_false, set_legacy
from ironbell.controllers.capt.observed import Observed
from ironbell.kube import patches
from ironbell.kube.conditions import set_condition
from ironbell.kube.decision import Action, Decision, MergePatch, do, patch, patch_status
from ironbell.provisioner.lifecycle.host import Step

READY: Final = "Ready"
OWNER_REMEDIATED: Final = "OwnerRemediated"
HEALTH_CHECK_SUCCEEDED: Final = "HealthCheckSucceeded"


def new_condition(type_: str, status: bool | None, reason: str, message: str = "", *, generation: int = 0) -> Condition:
    """Return a condition. A status of None means Unknown."""
    text = {True: "True", False: "False", None: "Unknown"}[status]
    return Condition(type=type_, status=text, reason=reason, message=message, observed_generation=generation)


def with_all(conditions: Sequence[Condition], updates: Sequence[Condition], now: datetime) -> list[Condition]:
    """Return the conditions with the updates applied."""
    updated = list(conditions)
    for condition in updates:
        updated = set_condition(updated, condition, now=now)
    return updated


def request_remediation(machine: Machine, now: datetime, *failed: Condition) -> MergePatch:
    """Return the write that requests a Machine's replacement from its owner; the conditions give the reason."""
    request = Condition(
        type=OWNER_REMEDIATED, status="False", reason="WaitingForRemediation", message="Waiting for remediation"
    )
    older = legacy_conditions(machine)
    for condition in (*failed, request):
        older = set_legacy(older, legacy_false(condition.type, condition.reason, WARNING), now=now)
    status = {
        "conditions": to_builtin(with_all(machine.status.conditions, [*failed, request], now)),
        "deprecated": {"v1beta1": {"conditions": to_builtin(older)}},
    }
    return patch_status(MACHINE, machine, status)


def decision(observed: Observed, step: Step, pause: Condition, now: datetime) -> Decision:
    """Return the step as a decision: its writes, then the request for a replacement, then the status."""
    if not step.is_reported:
        return do(*step.actions)
    obj, machine = observed.obj, observed.machine
    changes: dict[str, Any] = {}
    if step.phase:
        changes["instance_state"] = step.phase
    if step.is_provisioned:
        changes |= {"ready": True, "initialization": Initialization(provisioned=True)}
    if step.hardware is not None:
        changes |= _server(step.hardware, observed.infrastructure)
    replacement = None
    if step.replace_because and machine is not None:
        replacement = _replacement(machine, step.replace_because, now)
    status = status_change(obj, [pause, *step.conditions], now, **changes)
    return do(
        *step.actions,
        replacement,
        status,
        needs=step.needs,
        waiting=step.waiting,
        requeue_after_s=step.after_s,
    )


def status_change(
    obj: TinkerbellMachine, conditions: Sequence[Condition], now: datetime, **changes: Any
) -> Action | None:
    """Return the write of the status, if anything changed."""
    generation = obj.metadata.generation
    current = [msgspec.structs.replace(condition, observed_generation=generation) for condition in conditions]
    changes = {"conditions": with_all(obj.status.conditions, current, now), **changes}
    return patches.status_change(TINKERBELL_MACHINE, obj, obj.status, msgspec.structs.replace(obj.status, **changes))


def _server(hardware: Hardware, infrastructure: TinkerbellCluster | None) -> dict[str, Any]:
    """Return the fields of the status that describe the server."""
    first = hardware.spec.interfaces[0].dhcp if hardware.spec.interfaces else None
    address = first.ip.address if first is not None and first.ip is not None else ""
    addresses = [TinkerbellMachineAddress(type="InternalIP", address=address)] if address else []
    if first is not None and first.hostname:
        addresses.append(TinkerbellMachineAddress(type="Hostname", address=first.hostname))
    label = infrastructure.spec.failure_domain_label if infrastructure is not None else ""
    return {
        "target_namespace": hardware.metadata.namespace,
        "addresses": addresses,
        "failure_domain": hardware.metadata.labels.get(label, "") if label else "",
    }


def _replacement(machine: Machine, reason: str, now: datetime) -> MergePatch:
    """Return the request for a replacement: to the MachineHealthCheck that watches the Machine, so that the two do not
    contradict each other, or else to the owner."""
    if is_health_checked(machine):
        return patch(MACHINE, machine, {"metadata": {"annotations": {ANNOTATION_REMEDIATE_MACHINE: ""}}}, locked=True)
    failed = Condition(type=HEALTH_CHECK_SUCCEEDED, status="False", reason="InstallationFailed", message=reason)
    return request_remediation(machine, now, failed)
