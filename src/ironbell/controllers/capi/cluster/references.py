"""What a Cluster takes from its infrastructure and its control plane, and what they take from it.

Flags that say that something was made never go back; so a Cluster whose status was lost gets it again from the objects
of its providers, and nothing is made or deleted for that.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_phases.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster, FailureDomain
from ironbell.api.cluster.common import ApiEndpoint
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import Endpoint, InfrastructureCluster
from ironbell.contract.owners import owner_reference, owners_patch, with_owner
from ironbell.controllers.capi.cluster.observed import Observed
from ironbell.kube.decision import Action, emit, patch
from ironbell.kube.finalizers import is_deleting


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a cluster is, with what its providers say."""

    endpoint: ApiEndpoint
    failure_domains: tuple[FailureDomain, ...]
    infrastructure_provisioned: bool = False
    control_plane_initialized: bool = False

    @property
    def has_endpoint(self) -> bool:
        """Whether it is known where the cluster's API is."""
        return bool(self.endpoint.host and self.endpoint.port)


def progress(observed: Observed) -> Progress:
    """How far the cluster is now."""
    cluster = observed.cluster
    before = cluster.status.initialization
    known = Progress(
        cluster.spec.control_plane_endpoint,
        tuple(cluster.status.failure_domains),
        bool(before.infrastructure_provisioned),
        bool(before.control_plane_initialized) and not is_unfounded(observed),
    )
    if observed.endpoint_owner is not None:
        return known
    return _with_control_plane(observed, _with_infrastructure(observed, known))


def is_unfounded(observed: Observed) -> bool:
    """Whether the cluster is stored as initialized and cannot be: its control plane takes that back, no Machine of it
    ever became a Node, and the cluster has never answered. What was stored once stays otherwise."""
    external, state = observed.control_plane, observed.connection.value if observed.connection is not None else None
    if not observed.cluster.status.initialization.control_plane_initialized or state is None:
        return False
    if external is None or not external.is_found or external.is_deleting:
        return False
    said = ControlPlane.of(external)
    if (
        not said.denies_initialized
        or said.externally_managed
        or state.connected
        or state.last_probe_success is not None
    ):
        return False
    return not any(machine.status.node_ref.name for machine in observed.descendants.control_plane_machines)


def claimed(observed: Observed) -> Iterator[Action | None]:
    """The Cluster as owner of what it refers to, and its label there."""
    cluster = observed.cluster
    for external in (observed.infrastructure, observed.control_plane):
        if external is None or not external.is_found or (external.is_deleting and is_deleting(cluster)):
            continue
        kind, obj = external.found
        reference = owner_reference(CLUSTER, cluster, controller=observed.has_topology)
        change = owners_patch(kind, obj, with_owner(obj.metadata.owner_references, reference))
        if obj.metadata.labels.get(LABEL_CLUSTER_NAME) == cluster.metadata.name:
            yield change
            continue
        body = {"metadata": {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}}
        if change is not None:
            body["metadata"] |= change.body["metadata"]
        yield patch(kind, obj, body, locked=True)


def told(observed: Observed, now: Progress) -> Iterator[Action]:
    """Events for what has just become true."""
    cluster, before = observed.cluster, observed.cluster.status.initialization
    steps = (
        (now.infrastructure_provisioned and not before.infrastructure_provisioned, "Infrastructure", "Provisioned"),
        (now.control_plane_initialized and not before.control_plane_initialized, "ControlPlane", "Initialized"),
    )
    for is_new, what, how in steps:
        if is_new and (what == "Infrastructure" or observed.control_plane is not None):
            message = f"Cluster {cluster.metadata.name} {what}{how} is now True"
            reason = "InfrastructureReady" if what == "Infrastructure" else "ControlPlaneInitialized"
            yield emit(CLUSTER, cluster, reason=reason, message=message)


def endpoint_noted(cluster: Cluster, now: Progress) -> Action | None:
    """The endpoint, once a provider names one."""
    known = cluster.spec.control_plane_endpoint
    if (known.host and known.port) or not now.has_endpoint:
        return None
    body = {"spec": {"controlPlaneEndpoint": {"host": now.endpoint.host, "port": now.endpoint.port}}}
    # Under its version, so that the status can be written right after it.
    return patch(CLUSTER, cluster, body, locked=True)


def with_endpoint(observed: Observed, now: Progress) -> Observed:
    """What was observed as it is once the endpoint is noted: nobody else writes before the status is written."""
    cluster = observed.cluster
    spec = msgspec.structs.replace(cluster.spec, control_plane_endpoint=now.endpoint)
    metadata = msgspec.structs.replace(cluster.metadata, generation=cluster.metadata.generation + 1)
    return replace(observed, cluster=msgspec.structs.replace(cluster, metadata=metadata, spec=spec))


def lost(external: External | None, *, once: bool, how: str) -> str:
    """What is wrong with an object that was made and is not there any more; empty if nothing is."""
    if external is None or not external.is_missing or not once:
        return ""
    return f"{external.reference.kind} has been deleted after being {how}"


def _with_infrastructure(observed: Observed, known: Progress) -> Progress:
    external, deleting = observed.infrastructure, is_deleting(observed.cluster)
    if external is None:
        # A topology fills the reference in later; nobody else does.
        is_bare = not observed.has_topology and not deleting
        return replace(known, infrastructure_provisioned=known.infrastructure_provisioned or is_bare)
    if not external.is_found or external.is_deleting:
        return known
    said = InfrastructureCluster.of(external)
    if not said.provisioned and not known.infrastructure_provisioned:
        return known
    domains = tuple(
        FailureDomain(name=one.name, control_plane=one.control_plane, attributes=dict(one.attributes))
        for one in said.failure_domains
    )
    return replace(
        known,
        endpoint=_endpoint(known, said.endpoint),
        failure_domains=domains,
        infrastructure_provisioned=True,
    )


def _with_control_plane(observed: Observed, known: Progress) -> Progress:
    external = observed.control_plane
    if external is None:
        if observed.has_topology:
            return known
        first = any(machine.status.node_ref.name for machine in observed.descendants.control_plane_machines)
        return replace(known, control_plane_initialized=known.control_plane_initialized or first)
    if not external.is_found or external.is_deleting:
        return known
    said = ControlPlane.of(external)
    if not said.initialized and not known.control_plane_initialized:
        return known
    return replace(known, endpoint=_endpoint(known, said.endpoint), control_plane_initialized=True)


def _endpoint(known: Progress, said: Endpoint) -> ApiEndpoint:
    return known.endpoint if known.has_endpoint or not said.is_valid else ApiEndpoint(host=said.host, port=said.port)
