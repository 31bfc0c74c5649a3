"""The controller of MachineSets: adopts, replaces, creates and deletes Machines, and updates them in place.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from ironbell.api.bootstrap import KUBEADM_CONFIG_TEMPLATE
from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.names import (
    ANNOTATION_DISABLE_MACHINE_CREATE,
    ANNOTATION_REVISION,
    ANNOTATION_SKIP_PREFLIGHT_CHECKS,
    ANNOTATION_UPGRADE_STEP,
    FINALIZER_MACHINE_SET,
    LABEL_CLUSTER_NAME,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.paused import creation_stopped, is_paused
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.indexes import MACHINE_SETS_OF_CLUSTER, MACHINES_BY_OWNER, ORPHAN_MACHINES
from ironbell.controllers.capi.machinedeployment.limits import NoIntOrPercentError, scaled
from ironbell.controllers.capi.machines import next_stale_s, owned_template, younger_until_s
from ironbell.controllers.capi.machineset import desired, scaling, status
from ironbell.controllers.capi.machineset.desired import Followed
from ironbell.controllers.capi.machineset.observed import Attached, Observed, observe, of_machine
from ironbell.controllers.capi.machineset.preflight import Circumstances, ControlPlaneState, failing, skipped
from ironbell.controllers.capi.machineset.remediation import RemediationDecision, Rules, remediation_decisions
from ironbell.controllers.capi.status import remediation_patch
from ironbell.kube.decision import Action, Decision, Key, Waiting, delete, do, emit, patch, wait
from ironbell.kube.finalizers import add_finalizer, is_deleting, remove_finalizer
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
        machine_set, cluster = observed.machine_set, observed.cluster
        if cluster is None and not is_deleting(machine_set):
            name = machine_set.spec.cluster_name
            return wait("ClusterNotFound", f"Cluster {machine_set.metadata.namespace}/{name} does not exist; create it")
        if added := add_finalizer(MACHINE_SET, machine_set, FINALIZER_MACHINE_SET):
            return do(added)
        if is_paused(machine_set, cluster_paused=cluster is not None and bool(cluster.spec.paused)):
            return do(
                status.pause_change(observed, now), waiting=Waiting("Paused", "the MachineSet or its Cluster is paused")
            )
        if is_deleting(machine_set):
            return _deleting(observed, now)
        return _normal(observed, now)


def _deleting(observed: Observed, now: datetime) -> Decision:
    machine_set = observed.machine_set
    change = status.status_change(observed, (), now)
    if not observed.machines:
        return do(change, remove_finalizer(MACHINE_SET, machine_set, FINALIZER_MACHINE_SET))
    doomed = [delete(MACHINE, machine) for machine in observed.machines if not is_deleting(machine)]
    message = f"{len(observed.machines)} Machines are being deleted"
    return wait("DeletingMachines", message, change, *doomed, requeue_after_s=next_stale_s(observed.machines, now))


def _normal(observed: Observed, now: datetime) -> Decision:
    machine_set = observed.machine_set
    if attached := _attached(observed):
        return do(attached)
    if observed.is_owned and observed.owner is None:
        name = f"{machine_set.metadata.namespace}/{machine_set.metadata.labels[LABEL_DEPLOYMENT_NAME]}"
        return wait(
            "MachineDeploymentNotFound", f"MachineDeployment {name}, which the MachineSet's label names, does not exist"
        )
    adopted = [action for machine in observed.orphans for action in _adopted(observed, machine)]
    if adopted:
        return do(*adopted)
    checks = preflight(observed)
    grows = scaling.missing_machines(observed) > 0
    waiting = _blocked(observed, checks) if grows else None
    failed = scaling.failed(observed) if grows and (waiting is None or observed.naming_problem) else None
    change = status.status_change(observed, checks if grows else (), now, failed=failed)
    decisions = remediation_decisions(observed.machines, _rules(observed), checks)
    actions: list[Action | None] = [change, *_templates(observed), *_in_place(observed), *_remediated(decisions, now)]
    doomed = any(decision.deletes for decision in decisions)
    if grows and waiting is None and not doomed:
        actions += scaling.created(observed)
    elif not grows:
        actions += scaling.deleted(observed, now) if not doomed else []
        actions += scaling.cleaned(observed)
        actions.append(scaling.used_slots_patch(observed, observed.next_slot))
    return do(*actions, waiting=waiting, requeue_after_s=_requeue_after_s(observed, now, blocked=waiting is not None))


def preflight(observed: Observed) -> list[str]:
    """Reasons why no Machine may be created now, as far as the Cluster and its control plane are concerned."""
    machine_set, cluster, plane = observed.machine_set, observed.cluster, observed.control_plane
    if cluster is not None and (stopped := creation_stopped(cluster)):
        return [stopped]
    if cluster is None or plane is None:
        return []
    skip = machine_set.metadata.annotations.get(ANNOTATION_SKIP_PREFLIGHT_CHECKS, "")
    if not skip and observed.bootstrap is not None and observed.bootstrap.obj is not None:
        skip = observed.bootstrap.obj.metadata.annotations.get(ANNOTATION_SKIP_PREFLIGHT_CHECKS, "")
    if "All" in skipped(skip):
        return []
    if not plane.exists:
        return [str(plane)]
    control_plane = ControlPlane.of(plane)
    config = machine_set.spec.template.spec.bootstrap.config_ref
    topology = cluster.spec.topology
    return failing(
        Circumstances(
            ControlPlaneState(
                plane.reference.kind,
                f"{plane.namespace}/{plane.reference.name}",
                control_plane.version,
                tuple(count.version for count in control_plane.versions),
            ),
            machine_set.spec.template.spec.version,
            kubeadm=(config.kind, config.api_group) == (KUBEADM_CONFIG_TEMPLATE.kind, KUBEADM_CONFIG_TEMPLATE.group),
            topology_version=topology.version if topology.class_ref.name else "",
            upgrade_step=cluster.metadata.annotations.get(ANNOTATION_UPGRADE_STEP, ""),
        ),
        skipped(skip),
    )


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


def _adopted(observed: Observed, machine: Machine) -> list[Action]:
    machine_set = observed.machine_set
    if is_deleting(machine):
        return []
    owners = with_owner(machine.metadata.owner_references, desired.controlled_by(machine_set))
    change = owners_patch(MACHINE, machine, owners)
    event = emit(
        MACHINE_SET, machine_set, reason="SuccessfulAdopt", message=f'Adopted Machine "{machine.metadata.name}"'
    )
    return [change, event] if change is not None else []


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


def _rules(observed: Observed) -> Rules:
    if not observed.is_owned or observed.owner is None:
        return Rules()
    limit = observed.owner.spec.remediation.max_in_flight
    replicas = observed.owner.spec.replicas
    try:
        count = None if limit is None else scaled(limit, 1 if replicas is None else replicas, round_up=True)
    except NoIntOrPercentError:
        count = 0
    return Rules(not observed.is_current, count, str(limit))


def _remediated(decisions: Sequence[RemediationDecision], now: datetime) -> Iterator[Action | None]:
    for decision in decisions:
        yield remediation_patch(
            decision.machine, decision.reason, decision.message, decision.legacy_message, now, deletes=decision.deletes
        )
    for decision in decisions:
        if decision.deletes:
            yield delete(MACHINE, decision.machine)


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


def _requeue_after_s(observed: Observed, now: datetime, *, blocked: bool) -> float | None:
    moments = [next_stale_s(observed.machines, now), younger_until_s(observed.machines, now)]
    if blocked:
        moments.append(PREFLIGHT_S)
    return min((moment for moment in moments if moment is not None), default=None)
