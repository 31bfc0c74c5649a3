"""The controller of KubeadmControlPlanes.

A pass looks at the whole: certificates, the Machines and their parts, the inside of the cluster. It writes what it has
found out, and then takes one step (`steps`). docs/guide tells what users see.

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
    """A control plane as observed, with the place of its next Machine."""

    observed: Observed
    place: Slot | None = None
    naming_problem: str = ""


@dataclass(frozen=True)
class Scope:
    """A control plane whose Cluster exists and whose version is valid: all that its steps have in common."""

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
    """What precedes the next step: actions of its own, the view of the inside, and what is to be known."""

    actions: tuple[Action, ...]
    inspection: Inspection
    certificates: Mark | None
    needs: tuple[Need[Any], ...] = ()
    ready: bool = False
    """Whether the cluster is so far that Machines are made."""


class ControlPlaneReconciler:
    """Keeps the Machines of a control plane, their etcd, and what the cluster trusts."""

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
            draft.wait("WaitingForCluster", "the Cluster that names this control plane has not taken it over yet")
            return draft.decision()
        if added := add_finalizer(KUBEADM_CONTROL_PLANE, observed.kcp, FINALIZER):
            draft.first.append(added)
        _decide(draft, observation, observed.cluster)
        return draft.decision()


def _decide(draft: Draft[KubeadmControlPlane], observation: Observation, cluster: Cluster) -> None:
    observed, kcp = observation.observed, draft.obj
    version = find_version(kcp.spec.version)
    if is_paused(kcp, cluster_paused=bool(cluster.spec.paused)):
        # nothing but this condition is written
        pause = _pause(kcp, cluster)
        draft.put(pause)
        draft.wait("Paused", pause.message)
    elif observed.strays and not draft.is_deleting:
        adoption.reconcile(draft, observed)
    elif version is None:
        draft.wait("InvalidVersion", f"spec.version {kcp.spec.version!r} is no version such as v1.34.2")
    elif draft.is_deleting:
        _delete(draft, Scope(observed, cluster, version, draft.now))
    elif observation.place is None:
        draft.wait("InvalidNamingTemplate", f"spec.machineNaming.template: {observation.naming_problem}")
    else:
        _reconcile(draft, Scope(observed, cluster, version, draft.now), observation.place)


def _pause(kcp: KubeadmControlPlane, cluster: Cluster) -> Condition:
    return paused_condition(KUBEADM_CONTROL_PLANE.kind, kcp, cluster_paused=bool(cluster.spec.paused))


def _with_pause(kcp: KubeadmControlPlane, cluster: Cluster, now: datetime) -> KubeadmControlPlane:
    """The control plane with the condition that says whether it is paused."""
    pause, generation = _pause(kcp, cluster), kcp.metadata.generation
    conditions = set_condition(kcp.status.conditions, pause, now=now, generation=generation)
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, conditions=conditions))


def _plane(scope: Scope) -> ControlPlane:
    observed, cluster, now = scope.observed, scope.cluster, scope.now
    kcp, spec = _with_pause(observed.kcp, cluster, now), scope.config_spec
    configs: dict[str, Fields] = {name: to_builtin(config.spec) for name, config in observed.configs.items()}
    infra = {name: found.obj.body for name, found in observed.infra.items() if found.obj is not None}
    outdated = {}
    for machine in observed.machines:
        name = machine.metadata.name
        why = reasons(kcp, spec, scope.core, machine=machine, config=configs.get(name), infra=infra.get(name), now=now)
        if why:
            outdated[name] = why
    asked = observed.asked
    return ControlPlane(
        kcp,
        cluster,
        observed.machines,
        configs,
        infra,
        outdated=outdated,
        etcd_query=None if asked is None else asked.etcd,
    )


def _delete(draft: Draft[KubeadmControlPlane], scope: Scope) -> None:
    observed, now = scope.observed, scope.now
    found = deletion.next_step(observed, now)
    assessed = assess(_plane(scope), inspect(observed, now), now)
    report = Report(deleting=found.mark)
    draft.status = status_of(assessed, report, now)
    draft.last += found.actions
    if found.done:
        draft.last += _optional(remove_finalizer(KUBEADM_CONTROL_PLANE, draft.obj, FINALIZER))
    else:
        draft.owned += machine_status_patches(observed.machines, assessed.plane.machines)
        draft.wait(found.mark.reason, found.mark.message)


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
        certificates_failed=_were_being_made(observed.kcp),
        has_kubeadm_config=has_kubeadm_config(observed),
        initializes=step.initializes,
        failed=failed(observed.failure) if step.preflight.passed else None,
    )
    draft.status = status_of(assessed, report, now)
    kcp = observed.kcp
    if unfounded:
        report_repair(draft)
    looks = (step.again, prepared.inspection.again, next_change(kcp, observed.machines, now))
    next_actions = prepared.actions or step.actions
    written = machine_status_patches(observed.machines, assessed.plane.machines)
    touched = {action.name for action in next_actions if isinstance(action, MergePatch | Delete)}
    draft.last += [
        *(patch for patch in written if patch.name in touched),
        *next_actions,
        # Machines have many writers: that one of them was quicker must not hold up what comes before
        *_template_owner(scope),
        *(patch for patch in written if patch.name not in touched),
        *expiry.noted(observed.facts.serving, observed.machines, observed.configs),
        *_synced(scope, plane, {patch.name for patch in written} | touched),
    ]
    draft.need(*prepared.needs)
    draft.waiting = step.waiting
    for when in looks:
        draft.requeue_after(None if when is None else when - now + timedelta(seconds=1))


def _optional(action: Action | None) -> tuple[Action, ...]:
    return () if action is None else (action,)


def _prepare(scope: Scope, plane: ControlPlane) -> Preparation:
    """Everything up to where Machines matter."""
    observed, cluster, now = scope.observed, scope.cluster, scope.now
    kcp, asked = observed.kcp, observed.asked
    if not cluster.status.initialization.infrastructure_provisioned:
        return Preparation((), Inspection(InspectionState.NOT_INITIALIZED, _NO_INFRASTRUCTURE), None)
    credentials = authorities(observed, etcd_managed=plane.etcd_managed, initialized=plane.initialized)
    endpoint = cluster.spec.control_plane_endpoint
    if not endpoint.host or not endpoint.port:
        inspection = Inspection(InspectionState.NOT_INITIALIZED, _NO_ENDPOINT)
        return Preparation(credentials.actions, inspection, credentials.mark)
    server = f"https://{_bracketed(endpoint.host)}:{endpoint.port}"
    actions, wanted = kubeconfig(observed, server, now)
    if asked is not None:
        busy = _is_busy(plane)
        wanted += needs(asked, observed.facts, initialized=plane.initialized, busy=busy)
        if inspect(observed, now).state is InspectionState.COMPLETE:
            wanted += expiry.needs(asked.serving, observed.machines)
        wanted += upkeep.needs(kcp, asked, initialized=plane.initialized, rolls=bool(plane.needs_rollout), busy=busy)
    return Preparation(
        (*credentials.actions, *actions), inspect(observed, now), credentials.mark, tuple(wanted), ready=True
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_busy(plane: ControlPlane) -> bool:
    """Whether something happens, or is wrong, so that it is looked at often."""
    if len(plane.machines) != plane.desired or plane.outdated or plane.deleting_machines or plane.to_be_remediated:
        return True
    told = [c for c in plane.kcp.status.conditions if c.type in _HEALTH]
    types = (*health_conditions(plane.etcd_managed), MachineCondition.LABELS_AND_TAINTS)
    return any(c.status != "True" for c in told) or not all(all_true(machine, types) for machine in plane.machines)


def _step(scope: Scope, assessed: Assessed, prepared: Preparation, place: Slot) -> Step:
    if not prepared.ready:
        return Step(waiting=Waiting("WaitingForCluster", prepared.inspection.message))
    if prepared.actions:
        return Step(waiting=Waiting("Credentials", "certificates and kubeconfig are being made"))
    observed, template = scope.observed, scope.observed.template
    if template is None:
        return Step(waiting=Waiting("WaitingForTemplate", "spec.machineTemplate.spec.infrastructureRef names nothing"))
    plane, spec = assessed.plane, scope.config_spec
    situation = Situation(assessed, prepared.inspection, place, template, spec, scope.core, scope.now)
    if plane.needs_rollout and plane.initialized and prepared.inspection.state is InspectionState.COMPLETE:
        before = upkeep.before_rollout(observed.facts.kubeadm_config, ClusterKey.of(scope.cluster), spec, scope.core)
        if before is not None and not plane.deleting_machines:
            return before
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
    """The control plane with its condition about certificates, which decisions read."""
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


def _were_being_made(kcp: KubeadmControlPlane) -> bool:
    """Whether the last pass said that it makes certificates: one that says so again has not made them."""
    said = find_condition(kcp.status.conditions, ConditionType.CERTIFICATES_AVAILABLE)
    return said is not None and said.status == "Unknown"


def _template_owner(scope: Scope) -> Iterable[Action]:
    """The Cluster owns the template, so that it goes and moves with it."""
    template = scope.observed.template
    if template is None or template.obj is None or template.kind is None or template.is_deleting:
        return ()
    owners = with_owner(template.obj.metadata.owner_references, owner_reference(CLUSTER, scope.cluster))
    return _optional(owners_patch(template.kind, template.obj, owners))


def _synced(scope: Scope, plane: ControlPlane, busy: Container[str]) -> Iterable[Action]:
    """What Machines and their parts take over without being replaced; those that are being written come next time."""
    observed, kcp, name = scope.observed, scope.observed.kcp, scope.cluster.metadata.name
    found: list[Action | None] = []
    for machine in observed.machines:
        if machine.metadata.name not in busy:
            found.append(machine_sync(kcp, name, machine, etcd_managed=plane.etcd_managed))
        found += _parts(observed, machine, name)
    return [action for action in found if action is not None]


def _parts(observed: Observed, machine: Machine, cluster: str) -> list[Action | None]:
    kcp, found = observed.kcp, []
    infra = observed.infra.get(machine.metadata.name)
    if infra is not None and infra.obj is not None and infra.kind is not None and not is_deleting(machine):
        found.append(part_sync(infra.kind, kcp, cluster, infra.obj))
    config = observed.configs.get(machine.metadata.name)
    if config is not None and not is_deleting(machine):
        found.append(part_sync(KUBEADM_CONFIG, kcp, cluster, config))
    return list(found)
