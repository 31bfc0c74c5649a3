"""The controller of MachineHealthChecks: finds unhealthy Machines, and requests their remediation while they are few.

One decision covers all Machines of a check, by the contents of caches. Changes of Machines and Nodes that come close
together cause one decision.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinehealthcheck.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final

from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machinehealthcheck import MACHINE_HEALTH_CHECK, MachineHealthCheck
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.meta import to_builtin
from ironbell.contract.clusters.paused import PAUSED
from ironbell.contract.conditions.draft import ConditionsDraft
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
from ironbell.controllers.capi.status import paused
from ironbell.kube.conditions import is_true
from ironbell.kube.decision import Decision, Fields, Key, MergePatch, patch
from ironbell.kube.draft import replace
from ironbell.kube.reconciler import Cache, Declaration

NOT_KNOWN: Final = "NodesNotKnown"
MACHINES_AT_ONCE: Final = 100
"""Number of Machines that one decision writes to; a conflict with one of them restarts the decision."""
TARGETS_MAX: Final = 10000
_SECOND: Final = timedelta(seconds=1)


class MachineHealthCheckReconciler:
    """Checks the Machines that a MachineHealthCheck selects."""

    name = CONTROLLER
    declaration = Declaration(MACHINE_HEALTH_CHECK, watches=observing.WATCHES, indexes=observing.INDEXES)

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observing.observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft, cluster = ConditionsDraft(MACHINE_HEALTH_CHECK, observed.check, now), observed.cluster
        pause = paused(draft, cluster)
        if cluster is None:
            name = f"{draft.metadata.namespace}/{draft.obj.spec.cluster_name}"
            draft.wait("ClusterNotFound", f"Cluster {name} does not exist; create it or correct spec.clusterName")
        elif pause.status == "True":
            draft.put(pause)
            draft.wait(PAUSED, pause.message)
        elif observed.problem:
            draft.wait("InvalidSelector", observed.problem)
        else:
            draft.put(pause)
            _check(draft, observed, cluster)
        return draft.decision()


@dataclass(frozen=True, slots=True)
class _Result:
    """The health of all Machines."""

    diagnoses: tuple[tuple[Target, Diagnosis], ...]

    def of(self, health: Health) -> list[tuple[Target, Diagnosis]]:
        return [(target, diagnosis) for target, diagnosis in self.diagnoses if diagnosis.health is health]

    @property
    def check_in(self) -> timedelta | None:
        """Time after which a Machine could become unhealthy without any other change."""
        waits = [diagnosis.check_in for _, diagnosis in self.diagnoses if diagnosis.check_in is not None]
        return max(min(waits), _SECOND) if waits else None


def _check(draft: ConditionsDraft[MachineHealthCheck], observed: Observed, cluster: Cluster) -> None:
    draft.first.append(_belongs(draft.obj, cluster))
    known = known_nodes(observed) if is_true(cluster.status.conditions, "ControlPlaneInitialized") else NOT_QUERIED
    draft.need(*known.needs)
    if known.problem:
        draft.wait(NOT_KNOWN, known.problem)
    if known.is_pending:
        return
    targets = with_nodes(observed.machines, known)
    checker = HealthChecker.of(cluster, draft.obj.spec.checks, draft.now, restored=known.restored)
    result = _Result(tuple((target, checker.diagnose(target)) for target in targets))
    well, ill = result.of(Health.HEALTHY), result.of(Health.UNHEALTHY)
    trigger = draft.obj.spec.remediation.trigger_if
    limit = allowance(trigger, total=len(targets), healthy=len(well), reported=len(ill))
    _report(draft, observed, result, limit)
    groups = chain(
        ([*unhealthy(observed, target.machine, diagnosis, draft.now, act=limit.allowed)] for target, diagnosis in ill),
        ([*healthy(target.machine, observed.remediation, draft.now)] for target, _ in well),
    )
    changed = filter(None, groups)
    draft.last += chain.from_iterable(islice(changed, MACHINES_AT_ONCE))
    draft.requeue_after(result.check_in if next(changed, None) is None else 0.0)


def _belongs(check: MachineHealthCheck, cluster: Cluster) -> MergePatch | None:
    """Set the cluster's label, and the Cluster as an owner."""
    owners = with_owner(check.metadata.owner_references, owner_reference(CLUSTER, cluster))
    change: Fields = {}
    if check.metadata.labels.get(LABEL_CLUSTER_NAME) != check.spec.cluster_name:
        change["labels"] = {LABEL_CLUSTER_NAME: check.spec.cluster_name}
    if owners != check.metadata.owner_references:
        change["ownerReferences"] = to_builtin(owners)
    return patch(MACHINE_HEALTH_CHECK, check, {"metadata": change}, locked=True) if change else None


def _report(draft: ConditionsDraft[MachineHealthCheck], observed: Observed, result: _Result, limit: Allowance) -> None:
    """Bring the status up to date, and emit an event once if Machines stay unhealthy."""
    names = sorted(target.machine.metadata.name for target, _ in result.diagnoses)
    draft.status = replace(
        draft.status,
        expected_machines=len(names),
        current_healthy=len(result.of(Health.HEALTHY)),
        remediations_allowed=limit.more,
        targets=names[:TARGETS_MAX],
    )
    ill, old = result.of(Health.UNHEALTHY), draft.condition(REMEDIATION_ALLOWED)
    if limit.allowed:
        draft.set(REMEDIATION_ALLOWED, "True", Reason.REMEDIATION_ALLOWED)
        draft.put_legacy(legacy_true(REMEDIATION_ALLOWED))
    else:
        reason = Reason.TOO_MANY_UNHEALTHY
        draft.set(REMEDIATION_ALLOWED, "False", reason, limit.message)
        draft.put_legacy(legacy_false(REMEDIATION_ALLOWED, reason, WARNING, limit.message))
        if ill and (old is None or old.message != limit.message):
            draft.emit("RemediationRestricted", limit.message, warning=True)
    remediation = observed.remediation
    if remediation is not None and not remediation.template.exists and ill:
        problem = str(remediation.template)
        draft.put_legacy(legacy_false(TEMPLATE_AVAILABLE, "ExternalRemediationTemplateNotFound", ERROR, problem))
    draft.observe_generation()
