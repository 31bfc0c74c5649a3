"""Translation of a step of the server lifecycle into the TinkerbellMachine's status and the decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellcluster import Initialization, TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine, TinkerbellMachineAddress
from ironbell.api.cluster import MACHINE
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATE_MACHINE
from ironbell.api.meta import Condition
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.clusters.machine_failure import is_health_checked
from ironbell.controllers.capt.conditions import HEALTH_CHECK_SUCCEEDED, request_remediation, with_all
from ironbell.controllers.capt.observed import Observed
from ironbell.kube import patches
from ironbell.kube.decision import Action, Decision, MergePatch, do, patch
from ironbell.provisioner.lifecycle.host import Step


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
