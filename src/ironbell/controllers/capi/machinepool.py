"""The controller of MachinePools: a group of Machines that the infrastructure scales itself.

It owns the objects that pools refer to, and counts their Nodes. No provider of ours implements pools. Machines for the
members of a pool (`status.infrastructureMachineKind`) are not created, and deleting Nodes that are left behind is the
provider's task.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinepool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ironbell.api.cluster import CLUSTER, MACHINE_POOL
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import ObjectReference, StatusVersion
from ironbell.api.cluster.machine import MachineInitializationStatus
from ironbell.api.cluster.machinepool import MachinePool, MachinePoolPhase
from ironbell.api.cluster.names import ANNOTATION_REPLICAS_MANAGED_BY, FINALIZER_MACHINE_POOL, LABEL_CLUSTER_NAME
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.bootstrap import BootstrapConfig
from ironbell.contract.clusters.external import External, read_reference
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.conditions.legacy import (
    INFO,
    LegacyCondition,
    legacy_conditions,
    legacy_false,
    legacy_mirror,
    legacy_true,
)
from ironbell.contract.fields import at, number_at
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.indexes import MACHINE_POOLS_OF_CLUSTER
from ironbell.controllers.capi.machines import joined_versions
from ironbell.controllers.capi.machineset.reconciler import CLUSTER_CHANGED
from ironbell.controllers.capi.status import begin, paused
from ironbell.kube.decision import Action, Decision, Fact, Fields, Key, Need, delete, patch
from ironbell.kube.draft import replace
from ironbell.kube.finalizers import is_deleting, remove_finalizer
from ironbell.kube.reconciler import Cache, Declaration, read_by
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.queries import PUSHED_S, AllNodes, NodeView


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachinePool with everything that it refers to."""

    pool: MachinePool
    cluster: Cluster | None
    infrastructure: External
    bootstrap: External | None = None
    nodes: Fact[tuple[NodeView, ...]] | None = None

    @property
    def references(self) -> tuple[External, ...]:
        """The objects that the pool owns."""
        return (self.infrastructure,) if self.bootstrap is None else (self.bootstrap, self.infrastructure)

    @property
    def is_scaled_by_others(self) -> bool:
        """Return whether the infrastructure decides the number of Machines."""
        return self.pool.metadata.annotations.get(ANNOTATION_REPLICAS_MANAGED_BY, "false") != "false"


@dataclass(frozen=True, slots=True)
class Members:
    """The Nodes of a pool."""

    provider_ids: tuple[str, ...]
    nodes: tuple[NodeView, ...]
    ready: int
    available: int


class MachinePoolReconciler:
    """Reconciles MachinePools."""

    name = "capi-machinepool"
    declaration = Declaration(
        MACHINE_POOL,
        watches=(read_by(CLUSTER, relevant=CLUSTER_CHANGED), DEFINITIONS),
        indexes=(BY_GROUP_KIND, MACHINE_POOLS_OF_CLUSTER),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        pool = cache.get(MACHINE_POOL, *key)
        if pool is None:
            return None
        template = pool.spec.template.spec
        config = template.bootstrap.config_ref
        cluster = cache.get(CLUSTER, key[0], pool.spec.cluster_name)
        return Observed(
            pool,
            cluster,
            read_reference(cache, template.infrastructure_ref, key[0]),
            read_reference(cache, config, key[0]) if config.name else None,
            cache.fact(AllNodes(_cluster_key(pool, cluster)), PUSHED_S),
        )

    def decide(self, observed: Observed, now: datetime) -> Decision:
        draft = ConditionsDraft(MACHINE_POOL, observed.pool, now)
        if begin(draft, observed.cluster, FINALIZER_MACHINE_POOL):
            members = members_of(observed, now)
            _report(draft, observed, members)
            if draft.is_deleting:
                _delete(draft, observed)
            else:
                draft.need(Need(AllNodes(_cluster_key(draft.obj, observed.cluster)), PUSHED_S))
                draft.last += _attached(observed, members)
                _set_waiting(draft, observed)
        return draft.decision()


def _cluster_key(pool: MachinePool, cluster: Cluster | None) -> ClusterKey:
    return ClusterKey.named(pool.metadata.namespace, pool.spec.cluster_name, cluster)


def members_of(observed: Observed, now: datetime) -> Members:
    """The Nodes with the provider IDs that the infrastructure lists."""
    infrastructure = observed.infrastructure.obj
    listed = at(infrastructure.body, "spec", "providerIDList") if infrastructure is not None else None
    is_list = isinstance(listed, list) and _provisioned(observed)
    ids = tuple(str(i) for i in listed) if is_list and listed else tuple(observed.pool.spec.provider_id_list)
    known = observed.nodes.value if observed.nodes is not None and observed.nodes.value is not None else ()
    by_id = {node.provider_id: node for node in known if node.provider_id}
    nodes = tuple(by_id[provider_id] for provider_id in ids if provider_id in by_id)
    ready = [
        node for node in nodes if (condition := node.condition("Ready")) is not None and condition.status == "True"
    ]
    least = timedelta(seconds=observed.pool.spec.template.spec.min_ready_seconds or 0)
    available = [node for node in ready if _ready_for(node, now) >= least]
    return Members(ids, nodes, len(ready), len(available))


def _ready_for(node: NodeView, now: datetime) -> timedelta:
    condition = node.condition("Ready")
    since = condition.last_transition_time if condition is not None else None
    return now - parse_rfc3339(since) if since else timedelta(0)


def _provisioned(observed: Observed) -> bool:
    infrastructure = observed.infrastructure
    if infrastructure.exists:
        return InfrastructureMachine.of(infrastructure).provisioned
    return bool(observed.pool.status.initialization.infrastructure_provisioned)


def _has_data(observed: Observed) -> bool:
    """Return whether the bootstrap data exist; once they did, it stays True."""
    if observed.pool.status.initialization.bootstrap_data_secret_created:
        return True
    if observed.bootstrap is None:
        return observed.pool.spec.template.spec.bootstrap.data_secret_name is not None
    return observed.bootstrap.exists and BootstrapConfig.of(observed.bootstrap).data_secret_created


def _current(observed: Observed) -> int | None:
    infrastructure = observed.infrastructure.obj
    reported = number_at(infrastructure.body, "status", "replicas") if infrastructure is not None else None
    return observed.pool.status.replicas if reported is None else reported


def _report(draft: ConditionsDraft[MachinePool], observed: Observed, members: Members) -> None:
    """Bring the status up to date."""
    current, held = _current(observed), draft.status.initialization
    running = [node.node_info.kubelet_version for node in members.nodes]
    draft.put(paused(draft, observed.cluster))
    draft.status = replace(
        draft.status,
        phase=phase_of(observed, members),
        initialization=MachineInitializationStatus(
            bootstrap_data_secret_created=_has_data(observed) or None,
            infrastructure_provisioned=_provisioned(observed) or held.infrastructure_provisioned or None,
        ),
        replicas=current,
        ready_replicas=current,
        available_replicas=current,
        up_to_date_replicas=draft.obj.spec.replicas,
        node_refs=[ObjectReference(api_version="v1", kind="Node", name=n.name, uid=n.uid) for n in members.nodes],
        versions=joined_versions(StatusVersion(version=version, replicas=1) for version in running if version),
    )
    draft.set_older(
        ready_replicas=members.ready,
        available_replicas=members.available,
        unavailable_replicas=max((current or 0) - members.available, 0),
    )
    draft.put_legacy(*_legacy(observed, members))
    draft.summarize_legacy("BootstrapReady", "InfrastructureReady", "ReplicasReady")
    draft.observe_generation()


def phase_of(observed: Observed, members: Members) -> str:
    """The phase of a pool."""
    pool, desired = observed.pool, observed.pool.spec.replicas
    if is_deleting(pool):
        return MachinePoolPhase.DELETING.value
    if _provisioned(observed) and desired is not None:
        if desired == members.ready:
            return MachinePoolPhase.RUNNING.value
        if observed.is_scaled_by_others:
            return MachinePoolPhase.SCALING.value
        return (MachinePoolPhase.SCALING_UP if desired > members.ready else MachinePoolPhase.SCALING_DOWN).value
    if members.nodes:
        return MachinePoolPhase.PROVISIONED.value
    return (MachinePoolPhase.PROVISIONING if _has_data(observed) else MachinePoolPhase.PENDING).value


def _legacy(observed: Observed, members: Members) -> Iterator[LegacyCondition | None]:
    """Conditions of version v1beta1, except for the summary."""
    for external, name, waits, fine in (
        (observed.bootstrap, "BootstrapReady", "WaitingForDataSecret", _has_data(observed)),
        (observed.infrastructure, "InfrastructureReady", "WaitingForInfrastructure", _provisioned(observed)),
    ):
        fallback = legacy_true(name) if fine else legacy_false(name, waits, INFO)
        held = legacy_conditions(external.obj) if external is not None and external.obj is not None else ()
        yield legacy_mirror(held, name, fallback=fallback)
    is_whole = (_current(observed) or 0) == members.ready == len(members.nodes)
    yield legacy_true("ReplicasReady") if is_whole else legacy_false("ReplicasReady", "WaitingForReplicasReady", INFO)


def _attached(observed: Observed, members: Members) -> Iterator[Action | None]:
    """Set the owner references in both directions, and copy fields of the referred objects to the pool's spec."""
    pool, cluster = observed.pool, observed.cluster
    if cluster is None:
        return
    change: Fields = {}
    if pool.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster.metadata.name:
        change["metadata"] = {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}
    spec: Fields = {}
    if list(members.provider_ids) != pool.spec.provider_id_list:
        spec["providerIDList"] = list(members.provider_ids)
    bootstrap = observed.bootstrap
    secret = BootstrapConfig.of(bootstrap).data_secret_name if bootstrap is not None and bootstrap.exists else ""
    if secret and _has_data(observed) and secret != pool.spec.template.spec.bootstrap.data_secret_name:
        spec["template"] = {"spec": {"bootstrap": {"dataSecretName": secret}}}
    current = _current(observed)
    if observed.is_scaled_by_others and current is not None and current != pool.spec.replicas:
        spec["replicas"] = current
    if spec:
        change["spec"] = spec
    if change:
        yield patch(MACHINE_POOL, pool, change)
    owners = with_owner(pool.metadata.owner_references, owner_reference(CLUSTER, cluster))
    yield owners_patch(MACHINE_POOL, pool, owners)
    reference = owner_reference(MACHINE_POOL, pool, controller=True)
    for external in observed.references:
        if external.exists and not external.is_deleting:
            kind, obj = external.kind_and_object
            owned = owners_patch(kind, obj, with_owner(obj.metadata.owner_references, reference))
            if obj.metadata.labels.get(LABEL_CLUSTER_NAME) == cluster.metadata.name:
                yield owned
                continue
            metadata: Fields = {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}
            if owned is not None:
                metadata |= owned.body["metadata"]
            yield patch(kind, obj, {"metadata": metadata}, locked=True)


def _delete(draft: ConditionsDraft[MachinePool], observed: Observed) -> None:
    left = [external for external in observed.references if not external.is_missing]
    if not left:
        draft.last.append(remove_finalizer(MACHINE_POOL, draft.obj, FINALIZER_MACHINE_POOL))
        return
    draft.last += [
        delete(*external.kind_and_object) for external in left if external.exists and not external.is_deleting
    ]
    draft.wait("DeletingReferences", f"waiting for {', '.join(map(str, left))} to be deleted")


def _set_waiting(draft: ConditionsDraft[MachinePool], observed: Observed) -> None:
    for external in observed.references:
        if not external.exists:
            draft.wait("ReferencedObjectMissing", str(external))
    if not _has_data(observed):
        draft.wait("WaitingForBootstrapData", f"{observed.bootstrap} has no data yet")
    if not _provisioned(observed):
        draft.wait("WaitingForInfrastructure", f"{observed.infrastructure} is not provisioned")
