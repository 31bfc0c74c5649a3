"""TinkerbellCluster: says where the cluster's API will be, and which failure domains its servers give.

Nothing is made: the address is the user's, or that of what the machines themselves announce. A cluster that has no
owner reference finds its Cluster by label, so that it may stand beside another infrastructure's.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/cluster/tinkerbellcluster.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from ironbell.api.bmc import MACHINE as BMC_MACHINE
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.capt.tinkerbellcluster import FailureDomain, Initialization, TinkerbellCluster
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import ApiEndpoint
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core import NAMESPACE
from ironbell.api.meta import Condition
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.base.ports import KUBERNETES_API_PORT
from ironbell.contract.clusters.paused import is_externally_managed, is_paused, paused_condition
from ironbell.contract.clusters.references import BY_GROUP_KIND, DEFINITIONS
from ironbell.contract.owners import owner_reference, refers_to
from ironbell.controllers.capt.conditions import READY, told, with_all
from ironbell.controllers.capt.domains import (
    BY_FAILURE_DOMAIN_LABEL,
    BY_LABEL_NAME,
    WITH_DOMAINS,
    clusters_of,
    clusters_of_bmc,
    clusters_that_miss,
    clusters_with_domains,
    domains,
    has_moved,
    is_taken_or_freed,
)
from ironbell.kube import finalizers, patches
from ironbell.kube.decision import DONE, Action, Decision, Key, do, patch, wait
from ironbell.kube.reconciler import Cache, Declaration, Watch, by_label, read_by
from ironbell.provisioner.claims_from import ANNOTATED, rules_changed
from ironbell.provisioner.lifecycle.bmc_health import BY_BMC, contact_changed
from ironbell.provisioner.lifecycle.observe import SILENT

BY_CLUSTER_NAME = by_label(TINKERBELL_CLUSTER, LABEL_CLUSTER_NAME)


def _keys(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    reference = cluster.spec.infrastructure_ref
    namespace = cluster.metadata.namespace
    if reference.kind == TINKERBELL_CLUSTER.kind and reference.api_group == TINKERBELL_CLUSTER.group:
        yield namespace, reference.name
    for obj in cache.indexed(BY_CLUSTER_NAME, cluster.metadata.name):
        if obj.metadata.namespace == namespace:
            yield obj.key


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """Whether what is read of it changed: its status, which changes with each of its machines, is not, and each look
    goes through the servers."""
    if old is None or new is None:
        return True
    return (old.metadata.uid, old.spec) != (new.metadata.uid, new.spec)


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellCluster, its Cluster, and the domains of the servers."""

    obj: TinkerbellCluster
    cluster: Cluster | None
    domains: tuple[FailureDomain, ...] | None = ()
    """None while they are not known yet."""


class TinkerbellClusterReconciler:
    """Fills in endpoint, failure domains and readiness."""

    name = "capt-cluster"
    declaration = Declaration(
        TINKERBELL_CLUSTER,
        watches=(
            Watch(CLUSTER, _keys, _cluster_matters),
            Watch(HARDWARE, clusters_of, has_moved, delay_s=1.0),
            Watch(HARDWARE, clusters_that_miss, is_taken_or_freed, delay_s=1.0),
            Watch(BMC_MACHINE, clusters_of_bmc, contact_changed, delay_s=1.0),
            Watch(NAMESPACE, clusters_with_domains, rules_changed),
            read_by(TINKERBELL_MACHINE_TEMPLATE),
            DEFINITIONS,
        ),
        indexes=(
            *(BY_FAILURE_DOMAIN_LABEL, BY_LABEL_NAME, BY_CLUSTER_NAME, BY_GROUP_KIND),
            *(BY_BMC, SILENT, WITH_DOMAINS, ANNOTATED),
        ),
    )

    def observe(self, cache: Cache, key: Key) -> Observed | None:
        obj = cache.get(TINKERBELL_CLUSTER, *key)
        if obj is None:
            return None
        owner = next((one for one in obj.metadata.owner_references if one.kind == CLUSTER.kind), None)
        name = owner.name if owner is not None else obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
        cluster = cache.get(CLUSTER, key[0], name) if name else None
        return Observed(obj, cluster, domains(cache, obj, cluster))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, cluster = observed.obj, observed.cluster
        if is_externally_managed(obj) or finalizers.is_deleting(obj):
            return DONE
        if cluster is None:
            named = obj.metadata.labels.get(LABEL_CLUSTER_NAME)
            where = f"Cluster {named} does not exist" if named else "no Cluster has set its owner reference yet"
            return wait("WaitingForOwner", where)
        owned = _owned(obj, cluster)
        if owned is not None:
            return do(owned)
        paused = bool(cluster.spec.paused)
        pause = paused_condition(TINKERBELL_CLUSTER.kind, obj, cluster_paused=paused)
        if is_paused(obj, cluster_paused=paused):
            return wait("Paused", pause.message, _status(observed, obj, [pause], now))
        found = endpoint(obj.spec.control_plane_endpoint, cluster.spec.control_plane_endpoint)
        if found is None:
            message = "no endpoint is known; set spec.controlPlaneEndpoint.host of this object or of the Cluster"
            ready = told(READY, False, "WaitingForEndpoint", message, generation=obj.metadata.generation)
            return wait("WaitingForEndpoint", message, _status(observed, obj, [ready, pause], now))
        if observed.domains is None:
            return wait("WaitingForControlPlane", "what the control plane asks for has not been read yet")
        ready = told(READY, True, "Ready", generation=obj.metadata.generation)
        fields = {"host": found.host, "port": found.port}
        changed = obj.spec.control_plane_endpoint != found
        write = patch(TINKERBELL_CLUSTER, obj, {"spec": {"controlPlaneEndpoint": fields}}) if changed else None
        return do(write, _status(observed, obj, [ready, pause], now, provisioned=True))


def endpoint(own: ApiEndpoint, cluster: ApiEndpoint) -> ApiEndpoint | None:
    """The provider's own if complete, else the Cluster's if complete, else what both together give, with 6443 for a
    port that nobody names; None if nobody names a host."""
    for one in (own, cluster):
        if one.host and one.port:
            return one
    host = cluster.host or own.host
    return ApiEndpoint(host=host, port=cluster.port or own.port or KUBERNETES_API_PORT) if host else None


def _owned(obj: TinkerbellCluster, cluster: Cluster) -> Action | None:
    """The owner reference of one that found its Cluster by label."""
    if any(refers_to(one, CLUSTER, cluster) for one in obj.metadata.owner_references):
        return None
    reference = msgspec.to_builtins(owner_reference(CLUSTER, cluster, controller=True))
    others = msgspec.to_builtins(obj.metadata.owner_references)
    return patch(TINKERBELL_CLUSTER, obj, {"metadata": {"ownerReferences": [*others, reference]}}, locked=True)


def _status(
    observed: Observed,
    obj: TinkerbellCluster,
    conditions: Sequence[Condition],
    now: datetime,
    *,
    provisioned: bool = False,
) -> Action | None:
    """What is known. A cluster that was provisioned once stays so."""
    is_there = provisioned or obj.status.ready or bool(obj.status.initialization.provisioned)
    status = msgspec.structs.replace(
        obj.status,
        ready=is_there,
        initialization=Initialization(provisioned=True) if is_there else obj.status.initialization,
        failure_domains=list(observed.domains or ()) if provisioned else obj.status.failure_domains,
        conditions=with_all(obj.status.conditions, conditions, now),
    )
    return patches.status_change(TINKERBELL_CLUSTER, obj, obj.status, status)
