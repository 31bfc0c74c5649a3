"""The controller of MachineSets: adopts, replaces, creates and deletes Machines, and updates them in place.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import (
    ANNOTATION_DISABLE_MACHINE_CREATE,
    ANNOTATION_REVISION,
    FINALIZER_MACHINE_SET,
    LABEL_CLUSTER_NAME,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.clusters.slow_deletions import next_stale_s
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.indexes import MACHINE_SETS_OF_CLUSTER, MACHINES_BY_OWNER, ORPHAN_MACHINES
from ironbell.controllers.capi.machines import owned_template, younger_until_s
from ironbell.controllers.capi.machineset import scaling, status
from ironbell.controllers.capi.machineset.desired import Followed
from ironbell.controllers.capi.machineset.observed import Attached, Observed, observe, of_machine
from ironbell.controllers.capi.machineset.preflight import preflight
from ironbell.controllers.capi.machineset.remediation import remediated, remediation
from ironbell.controllers.capi.status import begin
from ironbell.kube.decision import Action, Decision, Key, Waiting, delete, patch
from ironbell.kube.finalizers import is_deleting, remove_finalizer
from ironbell.kube.predicates import Predicate, changed
from ironbell.kube.reconciler import Cache, Declaration, Watch, read_by

ROLL_UP_S: Final = 0.5
"""Time for gathering changes of Machines before they are counted."""
PREFLIGHT_S: Final = 15.0


CLUSTER_CHANGED: Final[Predicate[Cluster]] = changed(
    lambda cluster: (cluster.spec, cluster.metadata.annotations, cluster.status.failure_domains)
)
"""Passes changes of a Cluster that affect its sets of Machines."""
_DEPLOYMENT_CHANGED: Final[Predicate[MachineDeployment]] = changed(
    lambda deployment: (deployment.metadata.annotations.get(ANNOTATION_REVISION), deployment.spec)
)
"""Passes changes of a MachineDeployment that its MachineSets do not show."""


class MachineSetReconciler:
    """Keeps the desired number of Machines of one template."""

    name = "capi-machineset"
    declaration = Declaration(
        MACHINE_SET,
        watches=(
            Watch(MACHINE, of_machine, delay_s=ROLL_UP_S),
            read_by(CLUSTER, relevant=CLUSTER_CHANGED),
            read_by(MACHINE_DEPLOYMENT, relevant=_DEPLOYMENT_CHANGED),
            DEFINITIONS,
        ),
        indexes=(MACHINE_SETS_OF_CLUSTER, MACHINES_BY_OWNER, ORPHAN_MACHINES, BY_GROUP_KIND),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        return observe(cache, key)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConditionsDraft(MACHINE_SET, observed.machine_set, now)
        if begin(draft, observed.cluster, FINALIZER_MACHINE_SET):
            (_delete if draft.is_deleting else _reconcile)(draft, observed)
        return draft.decision()


def _delete(draft: ConditionsDraft[MachineSet], observed: Observed) -> None:
    status.report(draft, observed)
    if not observed.machines:
        draft.last.append(remove_finalizer(MACHINE_SET, draft.obj, FINALIZER_MACHINE_SET))
        return
    draft.last += [delete(MACHINE, machine) for machine in observed.machines if not is_deleting(machine)]
    draft.wait("DeletingMachines", f"{len(observed.machines)} Machines are being deleted")
    draft.requeue_after(next_stale_s(observed.machines, draft.now))


def _reconcile(draft: ConditionsDraft[MachineSet], observed: Observed) -> None:
    if attached := _attached(observed):
        draft.first.append(attached)
        return
    if observed.is_owned and observed.owner is None:
        name = f"{draft.metadata.namespace}/{draft.metadata.labels[LABEL_DEPLOYMENT_NAME]}"
        message = f"MachineDeployment {name}, which the MachineSet's label names, does not exist"
        draft.wait("MachineDeploymentNotFound", message)
        return
    for machine in observed.orphans:
        _adopt(draft, machine)
    if draft.owned:
        return
    checks = preflight(observed)
    grows = scaling.missing_machines(observed) > 0
    if grows:
        draft.waiting = _blocked(observed, checks)
    failed = scaling.failed(observed) if grows and (draft.waiting is None or observed.naming_problem) else None
    status.report(draft, observed, checks if grows else (), failed)
    decisions = remediation(observed, checks)
    draft.last += [*_templates(observed), *_in_place(observed), *remediated(decisions, draft.now)]
    doomed = any(decision.deletes for decision in decisions)
    if grows and draft.waiting is None and not doomed:
        scaling.create_machines(draft, observed)
    elif not grows:
        if not doomed:
            scaling.delete_machines(draft, observed)
        draft.last += [*scaling.cleaned(observed), scaling.used_slots_patch(observed, observed.next_slot)]
    draft.requeue_after(next_stale_s(observed.machines, draft.now))
    draft.requeue_after(younger_until_s(observed.machines, draft.now))
    draft.requeue_after(None if draft.waiting is None else PREFLIGHT_S)


def _attached(observed: Observed) -> Action | None:
    """Set the label of the cluster, and the Cluster as owner of a MachineSet without a MachineDeployment."""
    machine_set, cluster = observed.machine_set, observed.cluster
    if cluster is None:
        return None
    if machine_set.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster.metadata.name:
        return patch(MACHINE_SET, machine_set, {"metadata": {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}})
    if observed.is_owned or any(
        owner.kind == MACHINE_DEPLOYMENT.kind for owner in machine_set.metadata.owner_references
    ):
        return None
    owners = with_owner(machine_set.metadata.owner_references, owner_reference(CLUSTER, cluster))
    return owners_patch(MACHINE_SET, machine_set, owners)


def _adopt(draft: ConditionsDraft[MachineSet], machine: Machine) -> None:
    if is_deleting(machine):
        return
    owners = with_owner(machine.metadata.owner_references, owner_reference(MACHINE_SET, draft.obj, controller=True))
    if change := owners_patch(MACHINE, machine, owners):
        draft.owned += [change, draft.event("SuccessfulAdopt", f'Adopted Machine "{machine.metadata.name}"')]


def _templates(observed: Observed) -> Iterator[Action | None]:
    """Set the Cluster as an owner of the templates, so that they move along with it."""
    if observed.cluster is not None:
        for external in (observed.infrastructure, observed.bootstrap):
            yield owned_template(observed.cluster, external)


def _in_place(observed: Observed) -> Iterator[Action | None]:
    """Bring Machines in line with the template, each after its referred objects: its metadata mark them as done."""
    followed = Followed.of(observed.machine_set)
    for attached in observed.attached:
        yield from _clone_changes(followed, attached)
    behind = {attached.machine.metadata.name for attached in observed.attached if not _is_unread(attached)}
    for machine in observed.machines:
        yield followed.change(machine, metadata=machine.metadata.name in behind)


def _is_unread(attached: Attached) -> bool:
    """Return whether an object that a Machine refers to is not cached yet: then the Machine's metadata wait for it."""
    clones = [external for external in _clones(attached) if external is not None]
    return any(clone.problem == "" and not clone.exists and not clone.is_missing for clone in clones)


def _clones(attached: Attached) -> tuple[External | None, ...]:
    return (attached.infrastructure, attached.bootstrap)


def _clone_changes(followed: Followed, attached: Attached) -> Iterator[Action]:
    for external in _clones(attached):
        if external is not None and external.exists:
            kind, obj = external.kind_and_object
            if change := followed.metadata(obj):
                yield patch(kind, obj, {"metadata": change})


def _blocked(observed: Observed, checks: Sequence[str]) -> Waiting | None:
    """The reason why no Machine can be created now."""
    if observed.machine_set.metadata.annotations.get(ANNOTATION_DISABLE_MACHINE_CREATE) == "true":
        return Waiting("CreationDisabled", f"annotation {ANNOTATION_DISABLE_MACHINE_CREATE} is true")
    for external in (observed.bootstrap, observed.infrastructure):
        if external is not None and not external.exists:
            return Waiting("TemplateNotFound", str(external))
    if checks:
        return Waiting("PreflightCheckFailed", "; ".join(checks))
    if observed.naming_problem:
        return Waiting("InvalidNamingTemplate", observed.naming_problem)
    return None
