"""The controller of TinkerbellClusters: it reports the endpoint of the cluster's API and the servers' failure domains.

It creates nothing: the address is the user's, or one that the machines themselves announce. A TinkerbellCluster without
an owner reference finds its Cluster by label, so that it can exist beside the infrastructure of another provider.

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
from ironbell.controllers.capt.domains import (
    BY_FAILURE_DOMAIN_LABEL,
    BY_LABEL_NAME,
    WITH_DOMAINS,
    clusters_of,
    clusters_of_bmc,
    clusters_with_domains,
    clusters_without_equivalent,
    domains,
    has_moved,
    is_claimed_or_released,
)
from ironbell.controllers.capt.status import READY, new_condition, with_all
from ironbell.kube import finalizers, patches
from ironbell.kube.decision import DONE, Action, Decision, Key, do, patch, wait
from ironbell.kube.reconciler import Cache, Declaration, Watch, by_label, read_by
from ironbell.provisioner.claims_from import ANNOTATED, rules_changed
from ironbell.provisioner.lifecycle.bmc_health import BY_BMC, contact_changed
from ironbell.provisioner.lifecycle.observe import SILENT

BY_CLUSTER_NAME = by_label(TINKERBELL_CLUSTER, LABEL_CLUSTER_NAME)


def _clusters_for(cluster: Cluster, cache: Cache) -> Iterable[Key]:
    reference = cluster.spec.infrastructure_ref
    namespace = cluster.metadata.namespace
    if reference.kind == TINKERBELL_CLUSTER.kind and reference.api_group == TINKERBELL_CLUSTER.group:
        yield namespace, reference.name
    for obj in cache.indexed(BY_CLUSTER_NAME, cluster.metadata.name):
        if obj.metadata.namespace == namespace:
            yield obj.key


def _cluster_changed(old: Cluster | None, new: Cluster | None) -> bool:
    """Return whether the UID or spec changed. The status changes with each Machine and is not read; each reconciliation
    goes through all servers."""
    if old is None or new is None:
        return True
    return (old.metadata.uid, old.spec) != (new.metadata.uid, new.spec)


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellCluster, its Cluster, and the domains of the servers."""

    obj: TinkerbellCluster
    cluster: Cluster | None
    domains: tuple[FailureDomain, ...] | None = ()
    """None until they are known."""


class TinkerbellClusterReconciler:
    """Fills in endpoint, failure domains and readiness."""

    name = "capt-cluster"
    declaration = Declaration(
        TINKERBELL_CLUSTER,
        watches=(
            Watch(CLUSTER, _clusters_for, _cluster_changed),
            Watch(HARDWARE, clusters_of, has_moved, delay_s=1.0),
            Watch(HARDWARE, clusters_without_equivalent, is_claimed_or_released, delay_s=1.0),
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
        owner = next((owner for owner in obj.metadata.owner_references if owner.kind == CLUSTER.kind), None)
        name = owner.name if owner is not None else obj.metadata.labels.get(LABEL_CLUSTER_NAME, "")
        cluster = cache.get(CLUSTER, key[0], name) if name else None
        return Observed(obj, cluster, domains(cache, obj, cluster))

    def decide(self, observed: Observed, now: datetime) -> Decision:
        obj, cluster = observed.obj, observed.cluster
        if is_externally_managed(obj) or finalizers.is_deleting(obj):
            return DONE
        if cluster is None:
            named = obj.metadata.labels.get(LABEL_CLUSTER_NAME)
            message = f"Cluster {named} does not exist." if named else "No owner reference to a Cluster is set yet."
            return wait("WaitingForOwner", message)
        owned = _owned(obj, cluster)
        if owned is not None:
            return do(owned)
        paused = bool(cluster.spec.paused)
        pause = paused_condition(TINKERBELL_CLUSTER.kind, obj, cluster_paused=paused)
        if is_paused(obj, cluster_paused=paused):
            return wait("Paused", pause.message, _status(observed, obj, [pause], now))
        address = endpoint(obj.spec.control_plane_endpoint, cluster.spec.control_plane_endpoint)
        if address is None:
            message = "No endpoint is known. Set spec.controlPlaneEndpoint.host of this object or of the Cluster."
            ready = new_condition(READY, False, "WaitingForEndpoint", message, generation=obj.metadata.generation)
            return wait("WaitingForEndpoint", message, _status(observed, obj, [ready, pause], now))
        if observed.domains is None:
            return wait("WaitingForControlPlane", "The template of the control plane's machines is not read yet.")
        ready = new_condition(READY, True, "Ready", generation=obj.metadata.generation)
        fields = {"host": address.host, "port": address.port}
        changed = obj.spec.control_plane_endpoint != address
        write = patch(TINKERBELL_CLUSTER, obj, {"spec": {"controlPlaneEndpoint": fields}}) if changed else None
        return do(write, _status(observed, obj, [ready, pause], now, provisioned=True))


def endpoint(own: ApiEndpoint, cluster: ApiEndpoint) -> ApiEndpoint | None:
    """Return the provider's endpoint if it is complete, else the Cluster's if it is complete, else both combined, with
    6443 for an unset port; None if no host is set."""
    for candidate in (own, cluster):
        if candidate.host and candidate.port:
            return candidate
    host = cluster.host or own.host
    return ApiEndpoint(host=host, port=cluster.port or own.port or KUBERNETES_API_PORT) if host else None


def _owned(obj: TinkerbellCluster, cluster: Cluster) -> Action | None:
    """Return the write that adds the owner reference, for a TinkerbellCluster that found its Cluster by label."""
    if any(refers_to(reference, CLUSTER, cluster) for reference in obj.metadata.owner_references):
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
    """Return the write of the status, if it changed. A cluster stays provisioned once it was."""
    is_provisioned = provisioned or obj.status.ready or bool(obj.status.initialization.provisioned)
    status = msgspec.structs.replace(
        obj.status,
        ready=is_provisioned,
        initialization=Initialization(provisioned=True) if is_provisioned else obj.status.initialization,
        failure_domains=list(observed.domains or ()) if provisioned else obj.status.failure_domains,
        conditions=with_all(obj.status.conditions, conditions, now),
    )
    return patches.status_change(TINKERBELL_CLUSTER, obj, obj.status, status)
