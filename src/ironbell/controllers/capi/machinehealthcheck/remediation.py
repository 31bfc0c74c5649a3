"""What is written on a Machine of which is known how it does, and who is to remediate it. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck/machinehealthcheck_controller.go
(patchHealthyTargets, patchUnhealthyTargets). There a request that exists ends the look at all other Machines, and
healthy Machines without a request are not marked; both are put right here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.meta import Condition
from ironbell.contract.clusters.external import External, State
from ironbell.contract.conditions.legacy import WARNING, find_legacy, legacy_conditions, legacy_false, legacy_true
from ironbell.contract.owners import owner_reference
from ironbell.contract.templates import clone
from ironbell.controllers.capi.machinehealthcheck.checks import Verdict, message
from ironbell.controllers.capi.machinehealthcheck.names import (
    EXTERNALLY_REMEDIATED,
    HEALTH_CHECK_SUCCEEDED,
    LEGACY_REASONS,
    OWNER_REMEDIATED,
    Reason,
)
from ironbell.controllers.capi.machinehealthcheck.observed import Observed, Remediation
from ironbell.controllers.capi.status import status_patch
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Action, delete, emit
from ironbell.kube.finalizers import is_deleting

_GOOD: Final = Condition(type=HEALTH_CHECK_SUCCEEDED, status="True", reason=Reason.HEALTH_CHECK_SUCCEEDED)
_LEGACY_GOOD: Final = legacy_true(HEALTH_CHECK_SUCCEEDED)
_NOT_ASKED: Final = (Reason.TEMPLATE_NOT_FOUND, Reason.REQUEST_CREATION_FAILED)


def healthy(machine: Machine, remediation: Remediation | None, now: datetime) -> Iterator[Action]:
    """Say that the Machine is well; nobody needs to remediate it any more."""
    request = _request(machine, remediation)
    if request is not None and request.is_found and not request.is_deleting:
        yield delete(*request.found)
    if is_deleting(machine):
        return
    yield from _said(machine, [_GOOD], [_LEGACY_GOOD], now)


def unhealthy(observed: Observed, machine: Machine, verdict: Verdict, now: datetime, *, act: bool) -> Iterator[Action]:
    """Say what is wrong with the Machine, and if `act` have it remediated."""
    conditions, legacy = [_failed(verdict)], [_legacy_failed(verdict)]
    if act and observed.remediation is None and not is_deleting(machine):
        conditions += _to_owner(machine)
        legacy += _to_owner_legacy(machine)
    elif act and observed.remediation is not None:
        made, told = _to_others(observed, observed.remediation, machine)
        conditions += told
        yield from made
    yield from _said(machine, conditions, legacy, now)
    before = find_condition(machine.status.conditions, HEALTH_CHECK_SUCCEEDED)
    if before is None or before.status != "False":
        check = observed.check
        who = f"Machine {'/'.join(machine.key)} has been marked as unhealthy by {'/'.join(check.key)}"
        yield emit(MACHINE, machine, reason="MachineMarkedUnhealthy", message=who)


def _failed(verdict: Verdict) -> Condition:
    text = message(verdict.causes)
    return Condition(type=HEALTH_CHECK_SUCCEEDED, status="False", reason=verdict.reason, message=text)


def _legacy_failed(verdict: Verdict) -> LegacyCondition:
    text = "; ".join(verdict.causes)
    if verdict.reason == Reason.NODE_DELETED:
        text = ""
    elif verdict.reason == Reason.HAS_REMEDIATE_ANNOTATION:
        text = "Marked for remediation via remediate-machine annotation"
    return legacy_false(HEALTH_CHECK_SUCCEEDED, LEGACY_REASONS[Reason(verdict.reason)], WARNING, text)


def _to_owner(machine: Machine) -> list[Condition]:
    """Ask the owner for a remediation, unless one is asked for or under way already."""
    before = find_condition(machine.status.conditions, OWNER_REMEDIATED)
    if before is not None and before.status != "True":
        return []
    reason = Reason.WAITING_FOR_REMEDIATION
    return [Condition(type=OWNER_REMEDIATED, status="False", reason=reason, message="Waiting for remediation")]


def _to_owner_legacy(machine: Machine) -> list[LegacyCondition]:
    before = find_legacy(legacy_conditions(machine), OWNER_REMEDIATED)
    if before is not None and before.status != "True":
        return []
    return [legacy_false(OWNER_REMEDIATED, Reason.WAITING_FOR_REMEDIATION, WARNING)]


def _to_others(observed: Observed, how: Remediation, machine: Machine) -> tuple[list[Action], list[Condition]]:
    """Make a request for the one that remediates, named like the Machine: there is never a second one."""
    request = _request(machine, how)
    if request is not None and request.is_found:
        return [], _asked_already(machine)
    if request is None or request.state is not State.MISSING:
        return [], []
    if not how.template.is_found:
        told = f"Error retrieving remediation template {how.template}"
        return [], [_not_remediated(Reason.TEMPLATE_NOT_FOUND, told)]
    if how.kind is None:
        told = f"there is no CustomResourceDefinition for {request.reference.kind} in {request.reference.api_group}"
        return [], [_not_remediated(Reason.REQUEST_CREATION_FAILED, told)]
    made = clone(
        how.template,
        how.kind,
        name=machine.metadata.name,
        cluster=observed.check.spec.cluster_name,
        labels={},
        annotations={},
        owners=[owner_reference(MACHINE, machine)],
    )
    return [made], [_not_remediated(Reason.WAITING_FOR_REMEDIATION, "")]


def _asked_already(machine: Machine) -> list[Condition]:
    """That the remediation is waited for; what its controller has said since then stands."""
    before = find_condition(machine.status.conditions, EXTERNALLY_REMEDIATED)
    if before is not None and before.status != "True" and before.reason not in _NOT_ASKED:
        return []
    return [_not_remediated(Reason.WAITING_FOR_REMEDIATION, "")]


def _not_remediated(reason: str, text: str) -> Condition:
    return Condition(type=EXTERNALLY_REMEDIATED, status="False", reason=reason, message=text)


def _request(machine: Machine, remediation: Remediation | None) -> External | None:
    return None if remediation is None else remediation.requests.get(machine.metadata.name)


def _said(
    machine: Machine, conditions: Sequence[Condition], legacy: Sequence[LegacyCondition], now: datetime
) -> Iterator[Action]:
    """The patch that says so; nothing if all of it is said: that the Machine's generation moved on is no news."""
    older = legacy_conditions(machine)
    new = [one for one in conditions if not _stands(find_condition(machine.status.conditions, one.type), one)]
    new_legacy = [one for one in legacy if not _stands_legacy(find_legacy(older, one.type), one)]
    if new or new_legacy:
        patch = status_patch(MACHINE, machine, {}, new, now=now, legacy=new_legacy, observe=False)
        if patch is not None:
            yield patch


def _stands(old: Condition | None, new: Condition) -> bool:
    return old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message)


def _stands_legacy(old: LegacyCondition | None, new: LegacyCondition) -> bool:
    def said(one: LegacyCondition) -> tuple[str, ...]:
        return (one.status, one.severity, one.reason, one.message)

    return old is not None and said(old) == said(new)
