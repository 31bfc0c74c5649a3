"""The controller of topologies: keeps a Cluster's objects in line with its class and its topology.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/cluster_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ironbell.api.cluster import (
    CLUSTER,
    CLUSTER_CLASS,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_POOL,
)
from ironbell.api.cluster.classes.clusterclass import ClusterClass
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_TOPOLOGY_DEPLOYMENT_NAME
from ironbell.api.meta import Resource
from ironbell.contract.clusters.external import external_watch
from ironbell.contract.clusters.paused import is_paused
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.controllers.capi.topology import status
from ironbell.controllers.capi.topology.computing import compute
from ironbell.controllers.capi.topology.current import Current, read_current
from ironbell.controllers.capi.topology.desired.model import Blueprint, TopologyError
from ironbell.controllers.capi.topology.indexes import DEPLOYMENTS, MACHINES, POOLS, class_key, is_owned
from ironbell.controllers.capi.topology.reading import NotYetError, read_blueprint
from ironbell.controllers.capi.topology.status import CLASS_NOT_RECONCILED, DELETING, FAILED, Outcome
from ironbell.controllers.capi.topology.variables.values import Schemas
from ironbell.controllers.capi.topology.writing import Writer
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Decision, Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.predicates import changed
from ironbell.kube.reconciler import Cache, Changes, Declaration, Watch, read_by

TOPOLOGY_CONTROLLER = "capi-topology"
"""Name of the controller, and the field manager of everything that a topology creates."""
VARIABLES_READY = "VariablesReady"


@dataclass(frozen=True, slots=True)
class Observed:
    """A Cluster with the input of its topology's computation, or the reason why the input is incomplete."""

    cluster: Cluster
    blueprint: Blueprint | None = None
    current: Current | None = None
    problem: Outcome | None = None
    not_yet: str = ""


def class_problem(class_: ClusterClass) -> str:
    """The reason why a class cannot be used now; empty if it can."""
    condition = find_condition(class_.status.conditions, VARIABLES_READY)
    if condition is None or condition.status == "False":
        detail = f": {condition.message}" if condition is not None and condition.message else ""
        return (
            "ClusterClass is not successfully reconciled: status of VariablesReady condition on ClusterClass must be"
            f' "True"{detail}'
        )
    if class_.metadata.generation != class_.status.observed_generation:
        return (
            "ClusterClass is not successfully reconciled: ClusterClass.status.observedGeneration must be"
            f" {class_.metadata.generation}, but is {class_.status.observed_generation}"
        )
    return ""


def _of_cluster(obj: Resource, _cache: Cache) -> Iterable[Key]:
    name = obj.metadata.labels.get(LABEL_CLUSTER_NAME)
    return [(obj.metadata.namespace, name)] if name and is_owned(obj) else []


def _desired(obj: Resource) -> tuple[Any, ...]:
    """The metadata that changes with an object's desired state."""
    meta = obj.metadata
    return meta.generation, meta.labels, meta.annotations, meta.deletion_timestamp


def _machine_version(machine: Machine) -> tuple[Any, ...]:
    if not is_owned(machine):
        return ()
    info = machine.status.node_info
    kubelet = "" if info is None else info.kubelet_version
    return (machine.metadata.labels.get(LABEL_TOPOLOGY_DEPLOYMENT_NAME), machine.spec.version, kubelet)


def _has_topology(cluster: Cluster) -> bool:
    """Return whether a ClusterClass describes the cluster."""
    return bool(cluster.spec.topology.class_ref.name)


class TopologyReconciler:
    """Computes the desired objects of a Cluster with a topology, and writes the differences."""

    name = TOPOLOGY_CONTROLLER
    declaration = Declaration(
        CLUSTER,
        watches=(
            read_by(CLUSTER_CLASS),
            Watch(MACHINE_DEPLOYMENT, _of_cluster, changed(_desired)),
            Watch(MACHINE_POOL, _of_cluster, changed(lambda pool: (_desired(pool), pool.status.versions))),
            Watch(MACHINE_HEALTH_CHECK, _of_cluster, changed(_desired)),
            Watch(MACHINE, _of_cluster, changed(_machine_version, absent=())),
            DEFINITIONS,
        ),
        indexes=(DEPLOYMENTS, POOLS, MACHINES, BY_GROUP_KIND),
        dynamic=(external_watch(CLUSTER),),
        own=Changes(relevant=lambda old, new: _has_topology(old) or _has_topology(new)),
    )

    def __init__(self, schemas: Schemas) -> None:
        """`schemas` reads the schemas of variables."""
        self._schemas = schemas

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        cluster = cache.get(CLUSTER, *key)
        if cluster is None or not cluster.spec.topology.class_ref.name:
            return None
        if _is_paused(cluster) or is_deleting(cluster):
            return Observed(cluster)
        class_ = cache.get(CLUSTER_CLASS, *class_key(cluster))
        if class_ is None:
            name = "/".join(class_key(cluster))
            return Observed(
                cluster, problem=Outcome(FAILED, f"failed to retrieve ClusterClass {name}: it does not exist")
            )
        if problem := class_problem(class_):
            return Observed(cluster, problem=Outcome(CLASS_NOT_RECONCILED, problem))
        try:
            blueprint = read_blueprint(cache, class_)
            return Observed(cluster, blueprint, read_current(cache, cluster, blueprint))
        except NotYetError as error:
            return Observed(cluster, not_yet=str(error))
        except TopologyError as error:
            return Observed(cluster, problem=Outcome(FAILED, error.message))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        cluster, blueprint, current = observed.cluster, observed.blueprint, observed.current
        draft = ConditionsDraft(CLUSTER, cluster, now)
        if _is_paused(cluster):
            status.report(draft, status.paused(cluster))
        elif draft.is_deleting:
            status.report(draft, Outcome(DELETING, "Cluster is deleting"))
        elif observed.not_yet:
            draft.wait("ObjectsNotListed", observed.not_yet)
        elif observed.problem is not None or blueprint is None or current is None:
            status.report(draft, observed.problem or Outcome(FAILED, "the ClusterClass was not read"))
        else:
            self._reconcile(draft, blueprint, current)
        return draft.decision()

    def _reconcile(self, draft: ConditionsDraft[Cluster], blueprint: Blueprint, current: Current) -> None:
        try:
            computed = compute(draft.obj, blueprint, current, self._schemas)
            draft.owned += list(Writer(draft.obj, blueprint, current, computed).all())
        except TopologyError as error:
            status.report(draft, Outcome(FAILED, error.message))
            return
        outcome = status.of_versions(draft.obj, computed.versions, computed.desired.control_plane)
        status.report(draft, outcome, versions=computed.versions)


def _is_paused(cluster: Cluster) -> bool:
    return is_paused(cluster, cluster_paused=bool(cluster.spec.paused))
