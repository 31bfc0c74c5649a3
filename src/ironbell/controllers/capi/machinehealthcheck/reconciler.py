"""The controller of MachineHealthChecks: finds unhealthy Machines, and has them remediated while they are few.

One decision looks at all Machines of a check, by what caches hold. Changes of Machines and Nodes that come close
together make for one decision.

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
from ironbell.controllers.capi.machinehealthcheck.checks import Health, Judge, Target, Verdict
from ironbell.controllers.capi.machinehealthcheck.limits import Allowance, allowance
from ironbell.controllers.capi.machinehealthcheck.names import (
    CONTROLLER,
    REMEDIATION_ALLOWED,
    TEMPLATE_AVAILABLE,
    Reason,
)
from ironbell.controllers.capi.machinehealthcheck.nodes import UNASKED, known_nodes
from ironbell.controllers.capi.machinehealthcheck.nodes import targets as with_nodes
from ironbell.controllers.capi.machinehealthcheck.observed import Observed
from ironbell.controllers.capi.machinehealthcheck.remediation import healthy, unhealthy
from ironbell.controllers.capi.status import status_patch
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Action, Decision, Fields, Key, MergePatch, Waiting, do, emit, patch, wait
from ironbell.kube.reconciler import Cache, Declaration

NOT_KNOWN: Final = "NodesNotKnown"
MACHINES_AT_ONCE: Final = 100
"""So many Machines are written to in one decision; a conflict with one of them starts it over."""
TARGETS_MAX: Final = 10000


class MachineHealthCheckReconciler:
    """Keeps an eye on the Machines that a MachineHealthCheck selects."""

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
    """How all Machines do."""

    verdicts: tuple[tuple[Target, Verdict], ...]

    def of(self, health: Health) -> list[tuple[Target, Verdict]]:
        return [one for one in self.verdicts if one[1].health is health]

    @property
    def look_again_s(self) -> float | None:
        waits = [how.check_in for _, how in self.verdicts if how.check_in is not None]
        return max(min(waits).total_seconds(), 1.0) if waits else None


def _checked(observed: Observed, cluster: Cluster, paused: Condition, now: datetime) -> Decision:
    check, belongs = observed.check, _belongs(observed.check, cluster)
    known = known_nodes(observed) if is_true(cluster.status.conditions, "ControlPlaneInitialized") else UNASKED
    if known.is_asking:
        change = status_patch(MACHINE_HEALTH_CHECK, check, {}, [paused], now=now, observe=False)
        return wait(NOT_KNOWN, known.problem, belongs, change, needs=known.needs)
    targets = with_nodes(observed.machines, known)
    judge = Judge.of(cluster, check.spec.checks, now, restored=known.restored)
    result = _Result(tuple((one, judge.verdict(one)) for one in targets))
    well, ill = result.of(Health.HEALTHY), result.of(Health.UNHEALTHY)
    trigger = check.spec.remediation.trigger_if
    limit = allowance(trigger, total=len(targets), healthy=len(well), told=len(ill))
    actions, rest = _on_machines(observed, well, ill, now, act=limit.allowed)
    return do(
        belongs,
        _status(observed, result, limit, paused, now),
        _restricted(check, limit, len(ill)),
        *actions,
        needs=known.needs,
        waiting=Waiting(NOT_KNOWN, known.problem) if known.problem else None,
        requeue_after_s=0.0 if rest else result.look_again_s,
    )


def _on_machines(
    observed: Observed,
    well: Sequence[tuple[Target, Verdict]],
    ill: Sequence[tuple[Target, Verdict]],
    now: datetime,
    *,
    act: bool,
) -> tuple[list[Action], bool]:
    """What is written about Machines now, the unhealthy first; and whether there is more."""
    groups = chain(
        ([*unhealthy(observed, target.machine, how, now, act=act)] for target, how in ill),
        ([*healthy(target.machine, observed.remediation, now)] for target, _ in well),
    )
    changed = filter(None, groups)
    actions = [action for group in islice(changed, MACHINES_AT_ONCE) for action in group]
    return actions, next(changed, None) is not None


def _belongs(check: MachineHealthCheck, cluster: Cluster) -> MergePatch | None:
    """The cluster's label, and the Cluster as an owner."""
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
    names = sorted(target.machine.metadata.name for target, _ in result.verdicts)
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
    how = observed.remediation
    if how is not None and not how.template.is_found and result.of(Health.UNHEALTHY):
        legacy.append(legacy_false(TEMPLATE_AVAILABLE, "ExternalRemediationTemplateNotFound", ERROR, str(how.template)))
    return status_patch(MACHINE_HEALTH_CHECK, observed.check, fields, [condition, paused], now=now, legacy=legacy)


def _restricted(check: MachineHealthCheck, limit: Allowance, ill: int) -> Action | None:
    """The event that tells of Machines that are left unhealthy, once."""
    before = find_condition(check.status.conditions, REMEDIATION_ALLOWED)
    if limit.allowed or not ill or (before is not None and before.message == limit.message):
        return None
    return emit(MACHINE_HEALTH_CHECK, check, reason="RemediationRestricted", message=limit.message, warning=True)
