"""The controller of MachineDeployments: one MachineSet per template, and rollouts from one to the next.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeAlias

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_REVISION,
    FINALIZER_MACHINE_DEPLOYMENT,
    LABEL_CLUSTER_NAME,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.clusters.slow_deletions import next_stale_s
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.indexes import (
    MACHINE_DEPLOYMENTS_OF_CLUSTER,
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_BY_OWNER,
)
from ironbell.controllers.capi.machinedeployment import desired, status
from ironbell.controllers.capi.machinedeployment.limits import (
    ROLLING_UPDATE,
    Limits,
    NoIntOrPercentError,
    limits,
)
from ironbell.controllers.capi.machinedeployment.observed import Observed, observe, of_machine_set
from ironbell.controllers.capi.machinedeployment.plan import Count, Plan, planned, proportional
from ironbell.controllers.capi.machinedeployment.template import SetsByTemplate, rollout_after, sets_by_template
from ironbell.controllers.capi.machines import owned_template, younger_until_s
from ironbell.controllers.capi.machineset.reconciler import CLUSTER_CHANGED, ROLL_UP_S
from ironbell.controllers.capi.status import begin
from ironbell.kube.decision import Action, Decision, Key, create, delete, patch
from ironbell.kube.finalizers import is_deleting, remove_finalizer
from ironbell.kube.reconciler import Cache, Declaration, Watch, read_by

Draft: TypeAlias = ConditionsDraft[MachineDeployment]
_NEW: Final = "(new)"
"""Name of the MachineSet that is about to be created, in a plan."""


class MachineDeploymentReconciler:
    """Brings Machines from one template to the next within the limits of its strategy."""

    name = "capi-machinedeployment"
    declaration = Declaration(
        MACHINE_DEPLOYMENT,
        watches=(
            Watch(MACHINE_SET, of_machine_set),
            Watch(MACHINE, lambda machine, _cache: _of_machine(machine), delay_s=2 * ROLL_UP_S),
            read_by(CLUSTER, relevant=CLUSTER_CHANGED),
            DEFINITIONS,
        ),
        indexes=(
            MACHINE_DEPLOYMENTS_OF_CLUSTER,
            MACHINE_SETS_OF_CLUSTER,
            MACHINES_BY_OWNER,
            BY_GROUP_KIND,
        ),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConditionsDraft(MACHINE_DEPLOYMENT, observed.deployment, now)
        if begin(draft, observed.cluster, FINALIZER_MACHINE_DEPLOYMENT):
            bounds, sets = limits_of(draft.obj), sets_by_template(draft.obj, observed.sets, now)
            if draft.is_deleting:
                _delete(draft, observed, bounds, sets)
            else:
                _reconcile(draft, observed, bounds, sets)
        return draft.decision()


def limits_of(deployment: MachineDeployment) -> Limits:
    """The limits of a MachineDeployment; a limit that cannot be read is zero."""
    strategy = deployment.spec.rollout.strategy
    replicas, rolling = deployment.spec.replicas or 0, strategy.rolling_update
    kind = strategy.type or ROLLING_UPDATE
    try:
        return limits(kind, replicas, rolling.max_surge, rolling.max_unavailable)
    except NoIntOrPercentError:
        return limits(kind, replicas, 0, 0)


def _of_machine(machine: Any) -> list[Key]:
    name = machine.metadata.labels.get(LABEL_DEPLOYMENT_NAME, "")
    return [(machine.metadata.namespace, name)] if name else []


def _delete(draft: Draft, observed: Observed, bounds: Limits, sets: SetsByTemplate) -> None:
    status.report(draft, observed, bounds, sets.new)
    if not observed.sets:
        draft.last.append(remove_finalizer(MACHINE_DEPLOYMENT, draft.obj, FINALIZER_MACHINE_DEPLOYMENT))
        return
    draft.last += [delete(MACHINE_SET, machine_set) for machine_set in observed.sets if not is_deleting(machine_set)]
    draft.wait("DeletingMachineSets", f"{len(observed.sets)} MachineSets are being deleted")
    draft.requeue_after(next_stale_s(observed.machines, draft.now))


def _reconcile(draft: Draft, observed: Observed, bounds: Limits, sets: SetsByTemplate) -> None:
    cluster = observed.cluster
    if cluster is None:
        raise AssertionError("a rollout needs its Cluster")
    _attach(draft, observed, cluster)
    if any(draft.owned):
        return
    status.report(draft, observed, bounds, sets.new)
    draft.last += [owned_template(cluster, external) for external in (observed.infrastructure, observed.bootstrap)]
    _roll_out(draft, observed, bounds, sets)
    draft.requeue_after(next_stale_s(observed.machines, draft.now))
    draft.requeue_after(younger_until_s(observed.machines, draft.now))
    after = rollout_after(draft.obj)
    if after is not None and after > draft.now:
        draft.requeue_after((after - draft.now).total_seconds() + 0.1)


def _attach(draft: Draft, observed: Observed, cluster: Cluster) -> None:
    """Set the cluster's label and owner reference, and adopt MachineSets without a controller."""
    deployment = draft.obj
    if deployment.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster.metadata.name:
        labels = {"metadata": {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}}
        draft.owned.append(patch(MACHINE_DEPLOYMENT, deployment, labels))
    owners = with_owner(deployment.metadata.owner_references, owner_reference(CLUSTER, cluster))
    draft.owned.append(owners_patch(MACHINE_DEPLOYMENT, deployment, owners))
    reference = owner_reference(MACHINE_DEPLOYMENT, deployment, controller=True)
    for orphan in observed.orphans:
        if not is_deleting(orphan):
            change = owners_patch(MACHINE_SET, orphan, with_owner(orphan.metadata.owner_references, reference))
            event = draft.event("SuccessfulAdopt", f'Adopted MachineSet "{orphan.metadata.name}"')
            draft.owned += [change, event]


def _roll_out(draft: Draft, observed: Observed, bounds: Limits, sets: SetsByTemplate) -> None:
    deployment, number = draft.obj, desired.revision(sets.new, sets.old)
    is_held = bool(deployment.spec.paused)
    plan: Plan = {}
    if is_held:
        plan = _held_plan(deployment, bounds, sets)
    elif sets.new is None and not observed.has_templates:
        templates = (observed.infrastructure, observed.bootstrap)
        missing = [str(template) for template in templates if template is not None and not template.exists]
        draft.wait("TemplateNotFound", "; ".join(missing))
    else:
        plan = planned(bounds, _count_of_new(sets, draft.now), [_count(machine_set) for machine_set in sets.old])
        if sets.new is None:
            _create(draft, bounds, number, plan.get(_NEW, 0))
    for machine_set in sets.all:
        _keep(draft, bounds, machine_set, number, plan, is_new=machine_set is sets.new)
    if draft.waiting is None and not (is_held and sets.new is None):
        draft.last.append(_recorded_revision(deployment, number))
    if not is_held and sets.new is not None and status.is_complete(observed, bounds.replicas):
        for machine_set in sets.old:
            _clean(draft, machine_set)


def _count_of_new(sets: SetsByTemplate, now: datetime) -> Count:
    return _count(sets.new) if sets.new is not None else Count(_NEW, now.isoformat())


def _count(machine_set: MachineSet) -> Count:
    status_of = machine_set.status
    return Count(
        machine_set.metadata.name,
        machine_set.metadata.creation_timestamp or "",
        machine_set.spec.replicas or 0,
        status_of.replicas or 0,
        status_of.available_replicas or 0,
    )


def _create(draft: Draft, bounds: Limits, number: desired.Revision, replicas: int) -> None:
    body = desired.new_set(draft.obj, bounds, number, replicas)
    name = f"{draft.metadata.namespace}/{body['metadata']['name']}"
    event = draft.event("SuccessfulCreate", f"Created MachineSet {name} with {replicas} replicas")
    draft.last += [create(MACHINE_SET, body), event]


def _keep(
    draft: Draft, bounds: Limits, machine_set: MachineSet, number: desired.Revision, plan: Plan, *, is_new: bool
) -> None:
    """Bring a MachineSet in line, and to its next size."""
    if is_deleting(machine_set):
        return
    name = machine_set.metadata.name
    revisions = number.annotations if is_new else desired.held_revision(machine_set)
    annotations = desired.own_annotations(draft.obj, bounds, is_new=is_new) | dict(revisions)
    replicas, old_replicas = plan.get(name), machine_set.spec.replicas or 0
    change = desired.set_change(draft.obj, machine_set, annotations, replicas)
    draft.last.append(change)
    if change is not None and replicas is not None and replicas != old_replicas:
        direction = "down" if replicas < old_replicas else "up"
        message = f"Scaled {direction} MachineSet {name}: {old_replicas} -> {replicas}"
        draft.last.append(draft.event("SuccessfulScale", message))


def _clean(draft: Draft, machine_set: MachineSet) -> None:
    """Delete an old MachineSet without Machines."""
    is_empty = not (machine_set.spec.replicas or machine_set.status.replicas)
    is_observed = machine_set.metadata.generation <= machine_set.status.observed_generation
    if is_empty and is_observed and not is_deleting(machine_set):
        event = draft.event("SuccessfulDelete", f'Deleted MachineSet "{machine_set.metadata.name}"')
        draft.last += [delete(MACHINE_SET, machine_set), event]


def _held_plan(deployment: MachineDeployment, bounds: Limits, sets: SetsByTemplate) -> Plan:
    """Follow only the desired size, while rollouts are held."""
    active = [machine_set for machine_set in sets.all if machine_set.spec.replicas]
    if not sets.all:
        return {}
    if len(active) < 2:
        newest = max(sets.old, key=lambda machine_set: machine_set.metadata.creation_timestamp or "", default=sets.new)
        machine_set = active[0] if active else sets.new or newest
        return {machine_set.metadata.name: bounds.replicas} if machine_set is not None else {}
    if sets.new is not None and _is_saturated(sets.new, bounds):
        return {machine_set.metadata.name: 0 for machine_set in active if machine_set is not sets.new}
    if bounds.strategy != ROLLING_UPDATE:
        return {}
    counts = [(_count(machine_set), _annotated(machine_set, ANNOTATION_MAX_REPLICAS)) for machine_set in active]
    return proportional(bounds, counts, deployment.status.replicas or 0)


def _is_saturated(new: MachineSet, bounds: Limits) -> bool:
    available = new.status.available_replicas or 0
    return new.spec.replicas == _annotated(new, ANNOTATION_DESIRED_REPLICAS) == available == bounds.replicas


def _annotated(machine_set: MachineSet, name: str) -> int:
    text = machine_set.metadata.annotations.get(name, "")
    return decimal(text) or 0


def _recorded_revision(deployment: MachineDeployment, number: desired.Revision) -> Action | None:
    if deployment.metadata.annotations.get(ANNOTATION_REVISION) == number.number:
        return None
    return patch(MACHINE_DEPLOYMENT, deployment, {"metadata": {"annotations": {ANNOTATION_REVISION: number.number}}})
