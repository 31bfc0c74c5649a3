"""The controllers that delete templates which no MachineSet and no MachineDeployment uses any longer.

Each has its own finalizer, which holds the object until its templates are deleted, or are used elsewhere.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/machineset, core/reconcilers/topology/machinedeployment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from ironbell.api.cluster import CLUSTER, MACHINE_DEPLOYMENT, MACHINE_HEALTH_CHECK, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machinehealthcheck import MachineHealthCheck
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import (
    FINALIZER_MACHINE_DEPLOYMENT_TOPOLOGY,
    FINALIZER_MACHINE_SET_TOPOLOGY,
    LABEL_DEPLOYMENT_NAME,
)
from ironbell.contract.clusters.external import External, State, read_reference
from ironbell.contract.clusters.paused import is_paused
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.controllers.capi.topology.indexes import MACHINE_SETS, is_owned, joined
from ironbell.kube.decision import DONE, Decision, Key, delete
from ironbell.kube.draft import Draft
from ironbell.kube.finalizers import add_finalizer, has_finalizer, is_deleting, remove_finalizer
from ironbell.kube.reconciler import Cache, Declaration, read_by

_Workers: TypeAlias = MachineDeployment | MachineSet
_RefId: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachineDeployment or MachineSet of a topology, with its templates."""

    obj: _Workers
    cluster: Cluster | None
    unused: tuple[External, ...] = ()
    """Its templates that nothing else uses; only looked up while it is being deleted."""
    health_check: MachineHealthCheck | None = None


def _used(deployment: MachineDeployment | None, sets: Iterable[MachineSet]) -> set[_RefId]:
    """Templates of the objects that are not being deleted."""
    staying: list[_Workers] = [obj for obj in sets if not is_deleting(obj)]
    if deployment is not None and not is_deleting(deployment):
        staying.append(deployment)
    return {ref for obj in staying for ref in _references(obj)}


def _references(obj: _Workers) -> list[_RefId]:
    spec = obj.spec.template.spec
    refs = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return [(ref.api_group, ref.kind, ref.name) for ref in refs if ref.name]


def _unused(cache: Cache, obj: _Workers, used: set[_RefId]) -> tuple[External, ...]:
    spec = obj.spec.template.spec
    refs = (spec.bootstrap.config_ref, spec.infrastructure_ref)
    return tuple(
        read_reference(cache, ref, obj.metadata.namespace)
        for ref in refs
        if ref.name and (ref.api_group, ref.kind, ref.name) not in used
    )


def _decide(draft: Draft[Any], observed: Observed, finalizer: str) -> Decision:
    obj, cluster = draft.obj, observed.cluster
    unread = [template for template in observed.unused if template.state is State.UNKNOWN]
    if added := add_finalizer(draft.kind, obj, finalizer):
        draft.first.append(added)
    elif is_paused(obj, cluster_paused=cluster is not None and bool(cluster.spec.paused)):
        draft.wait("Paused", f"{draft.kind.kind} or its Cluster is paused")
    elif not draft.is_deleting or not has_finalizer(obj, finalizer):
        return DONE
    elif unread:
        draft.wait("TemplateNotRead", str(unread[0]))
    else:
        draft.owned += [delete(*template.kind_and_object) for template in observed.unused if template.exists]
        if observed.health_check is not None and not is_deleting(observed.health_check):
            draft.owned.append(delete(MACHINE_HEALTH_CHECK, observed.health_check))
        draft.last.append(remove_finalizer(draft.kind, obj, finalizer))
    return draft.decision()


class TopologyDeploymentReconciler:
    """Deletes the templates and the health check of a MachineDeployment that is being deleted."""

    name = "capi-topology-machinedeployment"
    declaration = Declaration(
        MACHINE_DEPLOYMENT,
        watches=(
            read_by(CLUSTER),
            read_by(MACHINE_SET, MACHINE_SETS),
            read_by(MACHINE_HEALTH_CHECK),
            DEFINITIONS,
        ),
        indexes=(MACHINE_SETS, BY_GROUP_KIND),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        deployment = cache.get(MACHINE_DEPLOYMENT, *key)
        if deployment is None or not is_owned(deployment):
            return None
        cluster = cache.get(CLUSTER, key[0], deployment.spec.cluster_name)
        if not is_deleting(deployment):
            return Observed(deployment, cluster)
        used = _used(None, cache.indexed(MACHINE_SETS, joined(*key)))
        check = cache.get(MACHINE_HEALTH_CHECK, *key)
        return Observed(deployment, cluster, _unused(cache, deployment, used), check)

    def decide(self, observed: Observed, now: datetime) -> Decision:
        return _decide(Draft(MACHINE_DEPLOYMENT, observed.obj, now), observed, FINALIZER_MACHINE_DEPLOYMENT_TOPOLOGY)


class TopologyMachineSetReconciler:
    """Deletes the templates of a MachineSet that is being deleted."""

    name = "capi-topology-machineset"
    declaration = Declaration(
        MACHINE_SET,
        watches=(read_by(CLUSTER), read_by(MACHINE_DEPLOYMENT), DEFINITIONS),
        indexes=(MACHINE_SETS, BY_GROUP_KIND),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        machine_set = cache.get(MACHINE_SET, *key)
        if machine_set is None or not is_owned(machine_set):
            return None
        cluster = cache.get(CLUSTER, key[0], machine_set.spec.cluster_name)
        if not is_deleting(machine_set):
            return Observed(machine_set, cluster)
        name = machine_set.metadata.labels.get(LABEL_DEPLOYMENT_NAME, "")
        deployment = cache.get(MACHINE_DEPLOYMENT, key[0], name) if name else None
        used = _used(deployment, cache.indexed(MACHINE_SETS, joined(key[0], name)) if name else ())
        return Observed(machine_set, cluster, _unused(cache, machine_set, used))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        return _decide(Draft(MACHINE_SET, observed.obj, now), observed, FINALIZER_MACHINE_SET_TOPOLOGY)
