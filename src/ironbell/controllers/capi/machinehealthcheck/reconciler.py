"""The controller of MachineHealthChecks: finds unhealthy Machines, and requests their remediation while they are few.

One decision covers all Machines of a check, by the contents of caches. Changes of Machines and Nodes that come close
together cause one decision.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Final

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK, MachineHealthCheck
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.clusters.paused import PAUSED, is_paused, paused_condition
from ironbell.contract.conditions.legacy import ERROR, WARNING, legacy_false, legacy_true
from ironbell.contract.owners import owner_reference, with_owner
from ironbell.controllers.capi.machinehealthcheck import observed as observing
from ironbell.controllers.capi.machinehealthcheck.checks import (
    CONTROLLER,
    REMEDIATION_ALLOWED,
    TEMPLATE_AVAILABLE,
    Diagnosis,
    Health,
    HealthChecker,
    Reason,
    Target,
)
from ironbell.controllers.capi.machinehealthcheck.limits import Allowance, allowance
from ironbell.controllers.capi.machinehealthcheck.observed import NOT_QUERIED, Observed, known_nodes
from ironbell.controllers.capi.machinehealthcheck.observed import targets as with_nodes
from ironbell.controllers.capi.machinehealthcheck.remediation import healthy, unhealthy
from ironbell.controllers.capi.status import status_patch
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Action, Decision, Fields, Key, MergePatch, Waiting, do, emit, patch, wait
from ironbell.kube.reconciler import Cache, Declaration

NOT_KNOWN: Final = "NodesNotKnown"
MACHINES_AT_ONCE: Final = 100
"""Number of Machines that one decision writes to; a conflict with one of them restarts the decision."""
TARGETS_MAX: Final = 10000


class MachineHealthCheckReconciler:
    """Checks the Machines that a MachineHealthCheck selects."""

    name = CONTROLLER
    declaration = Declaration(MACHINE_HEALTH_CHECK, watches=observing.WATCHES, indexes=observing.INDEXES)

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observing.observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        check, cluster = observed.check, observed.cluster
        if cluster is None:
            name = f"{check.metadata.namespace}/{check.spec.cluster_name}"
            return wait("ClusterNotFound", f"Cluster {name} does not exist; create it or correct spec.clusterName")
        paused = cluster.spec.paused is True
        condition = paused_condition(MACHINE_HEALTH_CHECK.kind, check, cluster_paused=paused)
        if is_paused(check, cluster_paused=paused):
            change = status_patch(MACHINE_HEALTH_CHECK, check, {}, [condition], now=now, observe=False)
            return wait(PAUSED, condition.message, change)
        if observed.problem:
            return wait("InvalidSelector", observed.problem)
        return _checked(observed, cluster, condition, now)


@dataclass(frozen=True, slots=True)
class _Result:
    """The health of all Machines."""

    diagnoses: tuple[tuple[Target, Diagnosis], ...]

    def of(self, health: Health) -> list[tuple[Target, Diagnosis]]:
        return [(target, diagnosis) for target, diagnosis in self.diagnoses if diagnosis.health is health]

    @property
    def requeue_after_s(self) -> float | None:
        waits = [diagnosis.check_in for _, diagnosis in self.diagnoses if diagnosis.check_in is not None]
        return max(min(waits).total_seconds(), 1.0) if waits else None


def _checked(observed: Observed, cluster: Cluster, paused: Condition, now: datetime) -> Decision:
    check, belongs = observed.check, _belongs(observed.check, cluster)
    known = known_nodes(observed) if is_true(cluster.status.conditions, "ControlPlaneInitialized") else NOT_QUERIED
    if known.is_pending:
        change = status_patch(MACHINE_HEALTH_CHECK, check, {}, [paused], now=now, observe=False)
        return wait(NOT_KNOWN, known.problem, belongs, change, needs=known.needs)
    targets = with_nodes(observed.machines, known)
    checker = HealthChecker.of(cluster, check.spec.checks, now, restored=known.restored)
    result = _Result(tuple((target, checker.diagnose(target)) for target in targets))
    well, ill = result.of(Health.HEALTHY), result.of(Health.UNHEALTHY)
    trigger = check.spec.remediation.trigger_if
    limit = allowance(trigger, total=len(targets), healthy=len(well), reported=len(ill))
    actions, remaining = _on_machines(observed, well, ill, now, act=limit.allowed)
    return do(
        belongs,
        _status(observed, result, limit, paused, now),
        _restricted(check, limit, len(ill)),
        *actions,
        needs=known.needs,
        waiting=Waiting(NOT_KNOWN, known.problem) if known.problem else None,
        requeue_after_s=0.0 if remaining else result.requeue_after_s,
    )


def _on_machines(
    observed: Observed,
    well: Sequence[tuple[Target, Diagnosis]],
    ill: Sequence[tuple[Target, Diagnosis]],
    now: datetime,
    *,
    act: bool,
) -> tuple[list[Action], bool]:
    """The writes to Machines now, the unhealthy first; and whether more are left."""
    groups = chain(
        ([*unhealthy(observed, target.machine, diagnosis, now, act=act)] for target, diagnosis in ill),
        ([*healthy(target.machine, observed.remediation, now)] for target, _ in well),
    )
    changed = filter(None, groups)
    actions = [action for group in islice(changed, MACHINES_AT_ONCE) for action in group]
    return actions, next(changed, None) is not None


def _belongs(check: MachineHealthCheck, cluster: Cluster) -> MergePatch | None:
    """Set the cluster's label, and the Cluster as an owner."""
    owners = with_owner(check.metadata.owner_references, owner_reference(CLUSTER, cluster))
    change: Fields = {}
    if check.metadata.labels.get(LABEL_CLUSTER_NAME) != check.spec.cluster_name:
        change["labels"] = {LABEL_CLUSTER_NAME: check.spec.cluster_name}
    if owners != check.metadata.owner_references:
        change["ownerReferences"] = to_builtin(owners)
    return patch(MACHINE_HEALTH_CHECK, check, {"metadata": change}, locked=True) if change else None


def _status(
    observed: Observed, result: _Result, limit: Allowance, paused: Condition, now: datetime
) -> MergePatch | None:
    names = sorted(target.machine.metadata.name for target, _ in result.diagnoses)
    fields: Fields = {
        "expectedMachines": len(names),
        "currentHealthy": len(result.of(Health.HEALTHY)),
        "remediationsAllowed": limit.more,
        "targets": names[:TARGETS_MAX],
    }
    condition = Condition(type=REMEDIATION_ALLOWED, status="True", reason=Reason.REMEDIATION_ALLOWED)
    legacy = [legacy_true(REMEDIATION_ALLOWED)]
    if not limit.allowed:
        reason = Reason.TOO_MANY_UNHEALTHY
        condition = Condition(type=REMEDIATION_ALLOWED, status="False", reason=reason, message=limit.message)
        legacy = [legacy_false(REMEDIATION_ALLOWED, reason, WARNING, limit.message)]
    remediation = observed.remediation
    if remediation is not None and not remediation.template.exists and result.of(Health.UNHEALTHY):
        legacy.append(
            legacy_false(TEMPLATE_AVAILABLE, "ExternalRemediationTemplateNotFound", ERROR, str(remediation.template))
        )
    return status_patch(MACHINE_HEALTH_CHECK, observed.check, fields, [condition, paused], now=now, legacy=legacy)


def _restricted(check: MachineHealthCheck, limit: Allowance, ill: int) -> Action | None:
    """The event about Machines that stay unhealthy, once."""
    condition = find_condition(check.status.conditions, REMEDIATION_ALLOWED)
    if limit.allowed or not ill or (condition is not None and condition.message == limit.message):
        return None
    return emit(MACHINE_HEALTH_CHECK, check, reason="RemediationRestricted", message=limit.message, warning=True)
