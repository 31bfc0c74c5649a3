"""The controller of KubeadmControlPlanes.

A reconciliation observes the whole: certificates, the Machines and their objects, and the workload cluster. It writes
the resulting conditions, and then takes one step (`steps`). docs/guide describes what users see.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.cluster import CLUSTER, Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.api.meta import Condition, to_builtin
from ironbell.contract.clusters.external import State
from ironbell.contract.clusters.name_templates import NameTemplateError
from ironbell.contract.clusters.paused import is_paused, paused_condition
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.clusters.versions import Version, find_version
from ironbell.contract.conditions import set_condition
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.kubeadm.controlplane.conditions.assess import (
    Assessed,
    assess,
    machine_status_patches,
    recovered,
    with_mark,
)
from ironbell.controllers.kubeadm.controlplane.conditions.marks import Mark
from ironbell.controllers.kubeadm.controlplane.initialization import (
    has_kubeadm_config,
    is_unfounded,
    not_initialized,
    report_repair,
)
from ironbell.controllers.kubeadm.controlplane.machines import adoption, deletion
from ironbell.controllers.kubeadm.controlplane.machines.creating import Slot, failed, settle, slot
from ironbell.controllers.kubeadm.controlplane.machines.desired import machine_sync, part_sync
from ironbell.controllers.kubeadm.controlplane.machines.rollout import next_change, reasons
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, all_true
from ironbell.controllers.kubeadm.controlplane.names import (
    FINALIZER,
    ConditionType,
    MachineCondition,
    health_conditions,
)
from ironbell.controllers.kubeadm.controlplane.observed import INDEXES, OWN, PARTS, WATCHES, Observed, observe
from ironbell.controllers.kubeadm.controlplane.status import Report, status_of
from ironbell.controllers.kubeadm.controlplane.steps import Situation, Step, next_step
from ironbell.controllers.kubeadm.controlplane.workload import expiry, upkeep
from ironbell.controllers.kubeadm.controlplane.workload.certificates import authorities, kubeconfig
from ironbell.controllers.kubeadm.controlplane.workload.inspection import Inspection, InspectionState, inspect, needs
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import (
    Action,
    Decision,
    Delete,
    Fields,
    Key,
    MergePatch,
    Need,
    Waiting,
)
from ironbell.kube.draft import Draft
from ironbell.kube.finalizers import add_finalizer, is_deleting, remove_finalizer
from ironbell.kube.reconciler import Cache, Declaration
from ironbell.workload.clusterkey import ClusterKey

_NO_INFRASTRUCTURE: Final = "Waiting for Cluster status.infrastructureReady to be true"
_HEALTH: Final = frozenset({ConditionType.ETCD_CLUSTER_HEALTHY, ConditionType.COMPONENTS_HEALTHY})
_NO_ENDPOINT: Final = "Waiting for Cluster spec.controlPlaneEndpoint to be set"


@dataclass(frozen=True)
class Observation:
    """The observed state of a control plane, with the slot of its next Machine."""

    observed: Observed
    place: Slot | None = None
    naming_problem: str = ""


@dataclass(frozen=True)
class Scope:
    """A control plane whose Cluster exists and whose version is valid: the input of every step."""

    observed: Observed
    cluster: Cluster
    version: Version
    now: datetime

    @property
    def core(self) -> tuple[int, int, int]:
        return self.version.major, self.version.minor, self.version.patch

    @property
    def config_spec(self) -> Fields:
        """`spec.kubeadmConfigSpec` as plain data."""
        fields: Fields = to_builtin(self.observed.kcp.spec.kubeadm_config_spec)
        return fields


@dataclass(frozen=True)
class Preparation:
    """The result of the preparation of a step: its actions, the inspection of the workload cluster, and queries."""

    actions: tuple[Action, ...]
    inspection: Inspection
    certificates: Mark | None
    needs: tuple[Need[Any], ...] = ()
    ready: bool = False
    """Whether Machines can be created."""


class ControlPlaneReconciler:
    """Manages the Machines of a control plane, their etcd, and the cluster's certificates."""

    name = "capi-kubeadmcontrolplane"
    declaration = Declaration(
        KUBEADM_CONTROL_PLANE,
        watches=(*WATCHES, DEFINITIONS),
        indexes=(*INDEXES, BY_GROUP_KIND),
        own=OWN,
        looked_up=PARTS,
    )

    def observe(self, cache: Cache, key: Key) -> Observation | None:
        observed = observe(cache, key)
        if observed is None or observed.cluster is None or observed.template is None:
            return None if observed is None else Observation(observed)
        try:
            place = slot(cache, observed.kcp, observed.cluster.metadata.name, observed.template)
        except NameTemplateError as error:
            return Observation(observed, naming_problem=error.message)
        return Observation(observed, place)

    def decide(self, observation: Observation, now: datetime) -> Decision:
        observed = observation.observed
        draft = Draft(KUBEADM_CONTROL_PLANE, observed.kcp, now, set_condition=set_condition)
        if observed.cluster is None:
            draft.wait("WaitingForCluster", "No owner reference to a Cluster is set yet.")
            return draft.decision()
        draft.first.append(add_finalizer(KUBEADM_CONTROL_PLANE, observed.kcp, FINALIZER))
        _decide(draft, observation, observed.cluster)
        return draft.decision()


def _decide(draft: Draft[KubeadmControlPlane], observation: Observation, cluster: Cluster) -> None:
    observed, kcp = observation.observed, draft.obj
    version = find_version(kcp.spec.version)
    if is_paused(kcp, cluster_paused=bool(cluster.spec.paused)):
        # only this condition is written
        pause = _pause(kcp, cluster)
        draft.put(pause)
        draft.wait("Paused", pause.message)
    elif observed.strays and not draft.is_deleting:
        adoption.reconcile(draft, observed)
    elif version is None:
        draft.wait("InvalidVersion", f"spec.version {kcp.spec.version!r} is not a valid version such as v1.34.2")
    elif draft.is_deleting:
        _delete(draft, Scope(observed, cluster, version, draft.now))
    elif observation.place is None:
        draft.wait("InvalidNamingTemplate", f"spec.machineNaming.template: {observation.naming_problem}")
    else:
        _reconcile(draft, Scope(observed, cluster, version, draft.now), observation.place)


def _pause(kcp: KubeadmControlPlane, cluster: Cluster) -> Condition:
    return paused_condition(KUBEADM_CONTROL_PLANE.kind, kcp, cluster_paused=bool(cluster.spec.paused))


def _with_pause(kcp: KubeadmControlPlane, cluster: Cluster, now: datetime) -> KubeadmControlPlane:
    """Return the control plane with the condition Paused."""
    pause, generation = _pause(kcp, cluster), kcp.metadata.generation
    conditions = set_condition(kcp.status.conditions, pause, now=now, generation=generation)
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, conditions=conditions))


def _plane(scope: Scope) -> ControlPlane:
    observed, cluster, now = scope.observed, scope.cluster, scope.now
    kcp, spec = _with_pause(observed.kcp, cluster, now), scope.config_spec
    configs: dict[str, Fields] = {name: to_builtin(config.spec) for name, config in observed.configs.items()}
    infra = {name: machine.obj.body for name, machine in observed.infra.items() if machine.obj is not None}
    outdated = {}
    for machine in observed.machines:
        name = machine.metadata.name
        problems = reasons(
            kcp, spec, scope.core, machine=machine, config=configs.get(name), infra=infra.get(name), now=now
        )
        if problems:
            outdated[name] = problems
    queries = observed.queries
    return ControlPlane(
        kcp,
        cluster,
        observed.machines,
        configs,
        infra,
        outdated=outdated,
        etcd_query=None if queries is None else queries.etcd,
    )


def _delete(draft: Draft[KubeadmControlPlane], scope: Scope) -> None:
    observed, now = scope.observed, scope.now
    step = deletion.next_step(observed, now)
    assessed = assess(_plane(scope), inspect(observed, now), now)
    report = Report(deleting=step.mark)
    draft.status = status_of(assessed, report, now)
    draft.last += step.actions
    if step.done:
        draft.last.append(remove_finalizer(KUBEADM_CONTROL_PLANE, draft.obj, FINALIZER))
    else:
        draft.owned += machine_status_patches(observed.machines, assessed.plane.machines)
        draft.wait(step.mark.reason, step.mark.message)


def _reconcile(draft: Draft[KubeadmControlPlane], scope: Scope, place: Slot) -> None:
    unfounded = is_unfounded(scope.observed)
    if unfounded:
        scope = replace(scope, observed=replace(scope.observed, kcp=not_initialized(draft.obj)))
    observed, now, plane = scope.observed, scope.now, _plane(scope)
    prepared = _prepare(scope, plane)
    plane = _with_certificates(plane, prepared.certificates, now)
    assessed = assess(plane, prepared.inspection, now)
    assessed = replace(assessed, plane=replace(assessed.plane, machines=recovered(assessed.plane.machines)))
    step = _step(scope, assessed, prepared, place)
    if step.machines is not None:
        assessed = replace(assessed, plane=replace(assessed.plane, machines=step.machines))
    template = observed.template
    report = Report(
        preflight=step.preflight,
        template_missing=template is not None and template.state is State.MISSING,
        certificates=prepared.certificates,
        certificates_failed=_was_creating_certificates(observed.kcp),
        has_kubeadm_config=has_kubeadm_config(observed),
        initializes=step.initializes,
        failed=failed(observed.failure) if step.preflight.passed else None,
    )
    draft.status = status_of(assessed, report, now)
    kcp = observed.kcp
    if unfounded:
        report_repair(draft)
    requeues = (step.again, prepared.inspection.again, next_change(kcp, observed.machines, now))
    next_actions = prepared.actions or step.actions
    written = machine_status_patches(observed.machines, assessed.plane.machines)
    touched = {action.name for action in next_actions if isinstance(action, MergePatch | Delete)}
    draft.last += [
        *(patch for patch in written if patch.name in touched),
        *next_actions,
        # Machines have many writers: a conflict here must not block the writes above
        _template_owner(scope),
        *(patch for patch in written if patch.name not in touched),
        *expiry.recorded(observed.facts.serving, observed.machines, observed.configs),
        *_synced(scope, plane, {patch.name for patch in written} | touched),
    ]
    draft.need(*prepared.needs)
    draft.waiting = step.waiting
    for when in requeues:
        draft.requeue_after(None if when is None else when - now + timedelta(seconds=1))


def _prepare(scope: Scope, plane: ControlPlane) -> Preparation:
    """Return the preparation: certificates, kubeconfig, and the queries about the workload cluster."""
    observed, cluster, now = scope.observed, scope.cluster, scope.now
    kcp, queries = observed.kcp, observed.queries
    if not cluster.status.initialization.infrastructure_provisioned:
        return Preparation((), Inspection(InspectionState.NOT_INITIALIZED, _NO_INFRASTRUCTURE), None)
    credentials = authorities(observed, etcd_managed=plane.etcd_managed, initialized=plane.initialized)
    endpoint = cluster.spec.control_plane_endpoint
    if not endpoint.host or not endpoint.port:
        inspection = Inspection(InspectionState.NOT_INITIALIZED, _NO_ENDPOINT)
        return Preparation(credentials.actions, inspection, credentials.mark)
    server = f"https://{_bracketed(endpoint.host)}:{endpoint.port}"
    actions, needed = kubeconfig(observed, server, now)
    if queries is not None:
        busy = _is_busy(plane)
        needed += needs(queries, observed.facts, initialized=plane.initialized, busy=busy)
        if inspect(observed, now).state is InspectionState.COMPLETE:
            needed += expiry.needs(queries.serving, observed.machines)
        needed += upkeep.needs(kcp, queries, initialized=plane.initialized, rolls=bool(plane.needs_rollout), busy=busy)
    return Preparation(
        (*credentials.actions, *actions), inspect(observed, now), credentials.mark, tuple(needed), ready=True
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_busy(plane: ControlPlane) -> bool:
    """Return whether something changes or is unhealthy, so that the workload cluster is queried often."""
    if len(plane.machines) != plane.desired or plane.outdated or plane.deleting_machines or plane.to_be_remediated:
        return True
    reported = [c for c in plane.kcp.status.conditions if c.type in _HEALTH]
    types = (*health_conditions(plane.etcd_managed), MachineCondition.LABELS_AND_TAINTS)
    return any(c.status != "True" for c in reported) or not all(all_true(machine, types) for machine in plane.machines)


def _step(scope: Scope, assessed: Assessed, prepared: Preparation, place: Slot) -> Step:
    if not prepared.ready:
        return Step(waiting=Waiting("WaitingForCluster", prepared.inspection.message))
    if prepared.actions:
        return Step(waiting=Waiting("Credentials", "Creating certificates and kubeconfig"))
    observed, template = scope.observed, scope.observed.template
    if template is None:
        return Step(waiting=Waiting("WaitingForTemplate", "spec.machineTemplate.spec.infrastructureRef is not set"))
    plane, spec = assessed.plane, scope.config_spec
    situation = Situation(assessed, prepared.inspection, place, template, spec, scope.core, scope.now)
    if plane.needs_rollout and plane.initialized and prepared.inspection.state is InspectionState.COMPLETE:
        preparing = upkeep.before_rollout(observed.facts.kubeadm_config, ClusterKey.of(scope.cluster), spec, scope.core)
        if preparing is not None and not plane.deleting_machines:
            return preparing
    step = next_step(situation)
    if not step.done:
        return step
    if leftover := settle(observed.kcp, place):
        return replace(step, actions=tuple(leftover))
    if prepared.inspection.state is not InspectionState.COMPLETE:
        return step
    steady = upkeep.steady(observed.facts.addons, plane, spec, scope.core)
    return replace(steady, machines=step.machines, again=step.again, waiting=steady.waiting or step.waiting)


def _with_certificates(plane: ControlPlane, mark: Mark | None, now: datetime) -> ControlPlane:
    """Return the control plane with its condition CertificatesAvailable, which decisions read."""
    if mark is None:
        return plane
    kcp = plane.kcp
    conditions = with_mark(
        kcp.status.conditions,
        ConditionType.CERTIFICATES_AVAILABLE,
        mark,
        now=now,
        generation=kcp.metadata.generation,
    )
    status = msgspec.structs.replace(kcp.status, conditions=conditions)
    return replace(plane, kcp=msgspec.structs.replace(kcp, status=status))


def _was_creating_certificates(kcp: KubeadmControlPlane) -> bool:
    """Return whether the last reconciliation was creating certificates; if it still is, their creation failed."""
    current = find_condition(kcp.status.conditions, ConditionType.CERTIFICATES_AVAILABLE)
    return current is not None and current.status == "Unknown"


def _template_owner(scope: Scope) -> Action | None:
    """Make the Cluster own the template, so that the template is deleted and moved with it."""
    template = scope.observed.template
    if template is None or template.obj is None or template.kind is None or template.is_deleting:
        return None
    owners = with_owner(template.obj.metadata.owner_references, owner_reference(CLUSTER, scope.cluster))
    return owners_patch(template.kind, template.obj, owners)


def _synced(scope: Scope, plane: ControlPlane, busy: Container[str]) -> Iterable[Action]:
    """Yield the in-place changes of Machines and their objects; Machines in `busy` are changed next time."""
    observed, kcp, name = scope.observed, scope.observed.kcp, scope.cluster.metadata.name
    changes: list[Action | None] = []
    for machine in observed.machines:
        if machine.metadata.name not in busy:
            changes.append(machine_sync(kcp, name, machine, etcd_managed=plane.etcd_managed))
        changes += _part_changes(observed, machine, name)
    return [action for action in changes if action is not None]


def _part_changes(observed: Observed, machine: Machine, cluster: str) -> list[Action | None]:
    kcp, changes = observed.kcp, []
    infra = observed.infra.get(machine.metadata.name)
    if infra is not None and infra.obj is not None and infra.kind is not None and not is_deleting(machine):
        changes.append(part_sync(infra.kind, kcp, cluster, infra.obj))
    config = observed.configs.get(machine.metadata.name)
    if config is not None and not is_deleting(machine):
        changes.append(part_sync(KUBEADM_CONFIG, kcp, cluster, config))
    return list(changes)
