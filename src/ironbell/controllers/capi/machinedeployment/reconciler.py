"""The controller of MachineDeployments: one MachineSet per template, and rollouts from one to the next.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
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
from ironbell.contract.clusters.paused import is_paused
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
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
from ironbell.controllers.capi.machines import next_stale_s, owned_template, younger_until_s
from ironbell.controllers.capi.machineset.reconciler import CLUSTER_CHANGED, ROLL_UP_S
from ironbell.kube.decision import Action, Decision, Key, Waiting, create, delete, do, emit, patch, wait
from ironbell.kube.finalizers import add_finalizer, is_deleting, remove_finalizer
from ironbell.kube.reconciler import Cache, Declaration, Watch, read_by

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
        deployment, cluster = observed.deployment, observed.cluster
        if cluster is None and not is_deleting(deployment):
            name = deployment.spec.cluster_name
            return wait("ClusterNotFound", f"Cluster {deployment.metadata.namespace}/{name} does not exist; create it")
        if added := add_finalizer(MACHINE_DEPLOYMENT, deployment, FINALIZER_MACHINE_DEPLOYMENT):
            return do(added)
        if is_paused(deployment, cluster_paused=cluster is not None and bool(cluster.spec.paused)):
            waiting = Waiting("Paused", "the MachineDeployment or its Cluster is paused")
            return do(status.pause_change(observed, now), waiting=waiting)
        bounds = limits_of(deployment)
        sets = sets_by_template(deployment, observed.sets, now)
        change = status.status_change(observed, bounds, sets.new, now)
        if is_deleting(deployment):
            return _deleting(observed, change, now)
        if attached := [action for action in _attached(observed) if action is not None]:
            return do(*attached)
        return _rollout(observed, bounds, sets, change, now)


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


def _deleting(observed: Observed, change: Action | None, now: datetime) -> Decision:
    deployment = observed.deployment
    if not observed.sets:
        return do(change, remove_finalizer(MACHINE_DEPLOYMENT, deployment, FINALIZER_MACHINE_DEPLOYMENT))
    doomed = [delete(MACHINE_SET, machine_set) for machine_set in observed.sets if not is_deleting(machine_set)]
    message = f"{len(observed.sets)} MachineSets are being deleted"
    again_s = next_stale_s(observed.machines, now)
    return wait("DeletingMachineSets", message, change, *doomed, requeue_after_s=again_s)


def _attached(observed: Observed) -> Iterator[Action | None]:
    """Set the cluster's label and owner reference, and adopt MachineSets without a controller."""
    deployment, cluster = observed.deployment, observed.cluster
    if cluster is None:
        return
    if deployment.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster.metadata.name:
        labels = {"metadata": {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}}
        yield patch(MACHINE_DEPLOYMENT, deployment, labels)
    owners = with_owner(deployment.metadata.owner_references, owner_reference(CLUSTER, cluster))
    yield owners_patch(MACHINE_DEPLOYMENT, deployment, owners)
    reference = owner_reference(MACHINE_DEPLOYMENT, deployment, controller=True)
    for orphan in observed.orphans:
        if not is_deleting(orphan):
            yield owners_patch(MACHINE_SET, orphan, with_owner(orphan.metadata.owner_references, reference))
            message = f'Adopted MachineSet "{orphan.metadata.name}"'
            yield emit(MACHINE_DEPLOYMENT, deployment, reason="SuccessfulAdopt", message=message)


def _rollout(
    observed: Observed, bounds: Limits, sets: SetsByTemplate, change: Action | None, now: datetime
) -> Decision:
    deployment, cluster = observed.deployment, observed.cluster
    if cluster is None:
        raise AssertionError("a rollout needs its Cluster")
    is_held = bool(deployment.spec.paused)
    number = desired.revision(sets.new, sets.old)
    actions: list[Action | None] = [change]
    actions += [owned_template(cluster, external) for external in (observed.infrastructure, observed.bootstrap)]
    waiting = None
    plan: Plan
    if is_held:
        plan = _held_plan(observed, bounds, sets)
    elif sets.new is None and not observed.has_templates:
        missing = [
            template
            for template in (observed.infrastructure, observed.bootstrap)
            if template is not None and not template.exists
        ]
        waiting = Waiting("TemplateNotFound", "; ".join(map(str, missing)))
        plan = {}
    else:
        plan = planned(bounds, _count_of_new(sets, now), [_count(machine_set) for machine_set in sets.old])
        if sets.new is None:
            actions += _created(observed, bounds, number, plan.get(_NEW, 0))
    for machine_set in (*([sets.new] if sets.new is not None else []), *sets.old):
        actions += _kept(observed, bounds, machine_set, number, plan, is_new=machine_set is sets.new)
    if waiting is None and not (is_held and sets.new is None):
        actions.append(_recorded_revision(deployment, number))
    if not is_held and sets.new is not None and status.is_complete(observed, bounds.replicas):
        actions += [action for machine_set in sets.old for action in _cleaned(observed, machine_set)]
    return do(*actions, waiting=waiting, requeue_after_s=_requeue_after_s(observed, now))


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


def _created(observed: Observed, bounds: Limits, number: desired.Revision, replicas: int) -> list[Action]:
    deployment = observed.deployment
    body = desired.new_set(deployment, bounds, number, replicas)
    name = f"{deployment.metadata.namespace}/{body['metadata']['name']}"
    message = f"Created MachineSet {name} with {replicas} replicas"
    return [
        create(MACHINE_SET, body),
        emit(MACHINE_DEPLOYMENT, deployment, reason="SuccessfulCreate", message=message),
    ]


def _kept(
    observed: Observed, bounds: Limits, machine_set: MachineSet, number: desired.Revision, plan: Plan, *, is_new: bool
) -> list[Action]:
    """Bring a MachineSet in line, and to its next size."""
    if is_deleting(machine_set):
        return []
    deployment, name = observed.deployment, machine_set.metadata.name
    revisions = number.annotations if is_new else desired.held_revision(machine_set)
    annotations = desired.own_annotations(deployment, bounds, is_new=is_new) | dict(revisions)
    replicas, old_replicas = plan.get(name), machine_set.spec.replicas or 0
    change = desired.set_change(deployment, machine_set, annotations, replicas)
    if change is None:
        return []
    if replicas is None or replicas == old_replicas:
        return [change]
    direction = "down" if replicas < old_replicas else "up"
    message = f"Scaled {direction} MachineSet {name}: {old_replicas} -> {replicas}"
    return [change, emit(MACHINE_DEPLOYMENT, deployment, reason="SuccessfulScale", message=message)]


def _cleaned(observed: Observed, machine_set: MachineSet) -> list[Action]:
    """Delete an old MachineSet without Machines."""
    is_empty = not (machine_set.spec.replicas or machine_set.status.replicas)
    if (
        is_deleting(machine_set)
        or not is_empty
        or machine_set.metadata.generation > machine_set.status.observed_generation
    ):
        return []
    message = f'Deleted MachineSet "{machine_set.metadata.name}"'
    return [
        delete(MACHINE_SET, machine_set),
        emit(MACHINE_DEPLOYMENT, observed.deployment, reason="SuccessfulDelete", message=message),
    ]


def _held_plan(observed: Observed, bounds: Limits, sets: SetsByTemplate) -> Plan:
    """Follow only the desired size, while rollouts are held."""
    everything = [*([sets.new] if sets.new is not None else []), *sets.old]
    active = [machine_set for machine_set in everything if machine_set.spec.replicas]
    if not everything:
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
    return proportional(bounds, counts, observed.deployment.status.replicas or 0)


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


def _requeue_after_s(observed: Observed, now: datetime) -> float | None:
    """Seconds until a rollout is due, or until a Machine has been in deletion for long."""
    moments = [next_stale_s(observed.machines, now), younger_until_s(observed.machines, now)]
    after = rollout_after(observed.deployment)
    if after is not None and after > now:
        moments.append((after - now).total_seconds() + 0.1)
    return min((moment for moment in moments if moment is not None), default=None)
