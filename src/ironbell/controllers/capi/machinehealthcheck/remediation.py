"""The conditions of Machines whose health is known, and the requests for their remediation. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go
(patchHealthyTargets, patchUnhealthyTargets). There, an existing request stops the handling of all other Machines, and
healthy Machines without a request are not marked; both are corrected here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.meta import Condition
from ironbell.contract.clusters.external import External, State
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import WARNING, find_legacy, legacy_conditions, legacy_false, legacy_true
from ironbell.contract.owners import owner_reference
from ironbell.contract.templates import clone
from ironbell.controllers.capi.machinehealthcheck.checks import (
    EXTERNALLY_REMEDIATED,
    HEALTH_CHECK_SUCCEEDED,
    LEGACY_REASONS,
    OWNER_REMEDIATED,
    Diagnosis,
    Reason,
    message,
)
from ironbell.controllers.capi.machinehealthcheck.observed import Observed, Remediation
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, delete, emit
from ironbell.kube.finalizers import is_deleting

_GOOD: Final = Condition(type=HEALTH_CHECK_SUCCEEDED, status="True", reason=Reason.HEALTH_CHECK_SUCCEEDED)
_LEGACY_GOOD: Final = legacy_true(HEALTH_CHECK_SUCCEEDED)
_NOT_REQUESTED: Final = (Reason.TEMPLATE_MISSING, Reason.REQUEST_CREATION_FAILED)


def healthy(machine: Machine, remediation: Remediation | None, now: datetime) -> Iterator[Action]:
    """Report that the Machine is healthy, and delete the request for its remediation."""
    request = _request(machine, remediation)
    if request is not None and request.exists and not request.is_deleting:
        yield delete(*request.kind_and_object)
    if is_deleting(machine):
        return
    yield from _patched(machine, [_GOOD], [_LEGACY_GOOD], now)


def unhealthy(
    observed: Observed, machine: Machine, diagnosis: Diagnosis, now: datetime, *, act: bool
) -> Iterator[Action]:
    """Report the problems of the Machine, and if `act` request its remediation."""
    conditions, legacy = [_failed(diagnosis)], [_legacy_failed(diagnosis)]
    if act and observed.remediation is None and not is_deleting(machine):
        conditions += _request_to_owner(machine)
        legacy += _legacy_request_to_owner(machine)
    elif act and observed.remediation is not None:
        requests, request_conditions = _request_to_controller(observed, observed.remediation, machine)
        conditions += request_conditions
        yield from requests
    yield from _patched(machine, conditions, legacy, now)
    condition = find_condition(machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
    if condition is None or condition.status != "False":
        check = observed.check
        message_text = f"Machine {'/'.join(machine.key)} has been marked as unhealthy by {'/'.join(check.key)}"
        yield emit(MACHINE, machine, reason="MachineMarkedUnhealthy", message=message_text)


def _failed(diagnosis: Diagnosis) -> Condition:
    text = message(diagnosis.causes)
    return Condition(type=HEALTH_CHECK_SUCCEEDED, status="False", reason=diagnosis.reason, message=text)


def _legacy_failed(diagnosis: Diagnosis) -> LegacyCondition:
    text = "; ".join(diagnosis.causes)
    if diagnosis.reason == Reason.NODE_DELETED:
        text = ""
    elif diagnosis.reason == Reason.HAS_REMEDIATE_ANNOTATION:
        text = "Marked for remediation via remediate-machine annotation"
    return legacy_false(HEALTH_CHECK_SUCCEEDED, LEGACY_REASONS[Reason(diagnosis.reason)], WARNING, text)


def _request_to_owner(machine: Machine) -> list[Condition]:
    """Request a remediation from the owner, unless it was requested already or is in progress."""
    condition = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if condition is not None and condition.status != "True":
        return []
    reason = Reason.WAITING_FOR_REMEDIATION
    return [Condition(type=OWNER_REMEDIATED, status="False", reason=reason, message="Waiting for remediation")]


def _legacy_request_to_owner(machine: Machine) -> list[LegacyCondition]:
    condition = find_legacy(legacy_conditions(machine), OWNER_REMEDIATED)
    if condition is not None and condition.status != "True":
        return []
    return [legacy_false(OWNER_REMEDIATED, Reason.WAITING_FOR_REMEDIATION, WARNING)]


def _request_to_controller(
    observed: Observed, remediation: Remediation, machine: Machine
) -> tuple[list[Action], list[Condition]]:
    """Create a request for an external controller, named like the Machine, so that there is never a second request."""
    request = _request(machine, remediation)
    if request is not None and request.exists:
        return [], _already_requested(machine)
    if request is None or request.state is not State.MISSING:
        return [], []
    if not remediation.template.exists:
        text = f"Error retrieving remediation template {remediation.template}"
        return [], [_not_remediated(Reason.TEMPLATE_MISSING, text)]
    if remediation.kind is None:
        text = f"no CustomResourceDefinition exists for {request.reference.kind} in {request.reference.api_group}"
        return [], [_not_remediated(Reason.REQUEST_CREATION_FAILED, text)]
    request_object = clone(
        remediation.template,
        remediation.kind,
        name=machine.metadata.name,
        cluster=observed.check.spec.cluster_name,
        labels={},
        annotations={},
        owners=[owner_reference(MACHINE, machine)],
    )
    return [request_object], [_not_remediated(Reason.WAITING_FOR_REMEDIATION, "")]


def _already_requested(machine: Machine) -> list[Condition]:
    """Report that the remediation is waited for, unless its controller has reported something since."""
    condition = find_condition(machine.status.conditions, EXTERNALLY_REMEDIATED)
    if condition is not None and condition.status != "True" and condition.reason not in _NOT_REQUESTED:
        return []
    return [_not_remediated(Reason.WAITING_FOR_REMEDIATION, "")]


def _not_remediated(reason: str, text: str) -> Condition:
    return Condition(type=EXTERNALLY_REMEDIATED, status="False", reason=reason, message=text)


def _request(machine: Machine, remediation: Remediation | None) -> External | None:
    return None if remediation is None else remediation.requests.get(machine.metadata.name)


def _patched(
    machine: Machine, conditions: Sequence[Condition], legacy: Sequence[LegacyCondition], now: datetime
) -> Iterator[Action]:
    """The patch of changed conditions; nothing if only the Machine's generation has increased."""
    older = legacy_conditions(machine)
    new = [
        condition
        for condition in conditions
        if not _stands(find_condition(machine.status.conditions, condition.type), condition)
    ]
    new_legacy = [
        condition for condition in legacy if not _stands_legacy(find_legacy(older, condition.type), condition)
    ]
    if new or new_legacy:
        draft = ConditionsDraft(MACHINE, machine, now)
        draft.put(*new)
        draft.put_legacy(*new_legacy)
        if change := draft.status_write():
            yield change


def _stands(old: Condition | None, new: Condition) -> bool:
    return old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message)


def _stands_legacy(old: LegacyCondition | None, new: LegacyCondition) -> bool:
    def values(condition: LegacyCondition) -> tuple[str, ...]:
        return (condition.status, condition.severity, condition.reason, condition.message)

    return old is not None and values(old) == values(new)
