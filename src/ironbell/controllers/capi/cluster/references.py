"""The fields that a Cluster copies from its infrastructure and its control plane, and the references between them.

Flags for created objects are never reset; so a Cluster whose status was lost gets it back from the objects of its
providers, and nothing is created or deleted for that.

Source: kubernetes-sigs/cluster-api: core/reconcilers/cluster/cluster_controller_phases.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import FailureDomain
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
    """The progress of a cluster, by the reports of its providers."""

    endpoint: ApiEndpoint
    failure_domains: tuple[FailureDomain, ...]
    infrastructure_provisioned: bool = False
    control_plane_initialized: bool = False

    @property
    def has_endpoint(self) -> bool:
        """Return whether the address of the cluster's API is known."""
        return bool(self.endpoint.host and self.endpoint.port)


def progress(observed: Observed) -> Progress:
    """The current progress of the cluster."""
    cluster = observed.cluster
    initialization = cluster.status.initialization
    known = Progress(
        cluster.spec.control_plane_endpoint,
        tuple(cluster.status.failure_domains),
        bool(initialization.infrastructure_provisioned),
        bool(initialization.control_plane_initialized) and not is_unfounded(observed),
    )
    if observed.endpoint_owner is not None:
        return known
    return _with_control_plane(observed, _with_infrastructure(observed, known))


def is_unfounded(observed: Observed) -> bool:
    """Return whether the cluster is stored as initialized and cannot be.

    It cannot be if its control plane denies it, no control plane Machine ever became a Node, and the cluster has never
    answered. Otherwise the stored flag is kept.
    """
    external, state = observed.control_plane, observed.connection.value if observed.connection is not None else None
    if not observed.cluster.status.initialization.control_plane_initialized or state is None:
        return False
    if external is None or not external.exists or external.is_deleting:
        return False
    plane = ControlPlane.of(external)
    if (
        not plane.denies_initialized
        or plane.externally_managed
        or state.connected
        or state.last_probe_success is not None
    ):
        return False
    return not any(machine.status.node_ref.name for machine in observed.descendants.control_plane_machines)


def claimed(observed: Observed) -> Iterator[Action | None]:
    """Set the Cluster as owner of the objects that it refers to, and its label on them."""
    cluster = observed.cluster
    for external in (observed.infrastructure, observed.control_plane):
        if external is None or not external.exists or (external.is_deleting and is_deleting(cluster)):
            continue
        kind, obj = external.kind_and_object
        reference = owner_reference(CLUSTER, cluster, controller=observed.has_topology)
        change = owners_patch(kind, obj, with_owner(obj.metadata.owner_references, reference))
        if obj.metadata.labels.get(LABEL_CLUSTER_NAME) == cluster.metadata.name:
            yield change
            continue
        body = {"metadata": {"labels": {LABEL_CLUSTER_NAME: cluster.metadata.name}}}
        if change is not None:
            body["metadata"] |= change.body["metadata"]
        yield patch(kind, obj, body, locked=True)


def events(observed: Observed, now: Progress) -> Iterator[Action]:
    """Events for flags that have just become true."""
    cluster, initialization = observed.cluster, observed.cluster.status.initialization
    steps = (
        (
            now.infrastructure_provisioned and not initialization.infrastructure_provisioned,
            "Infrastructure",
            "Provisioned",
        ),
        (now.control_plane_initialized and not initialization.control_plane_initialized, "ControlPlane", "Initialized"),
    )
    for is_new, subject, state in steps:
        if is_new and (subject == "Infrastructure" or observed.control_plane is not None):
            message = f"Cluster {cluster.metadata.name} {subject}{state} is now True"
            reason = "InfrastructureReady" if subject == "Infrastructure" else "ControlPlaneInitialized"
            yield emit(CLUSTER, cluster, reason=reason, message=message)


def lost(external: External | None, *, once: bool, flag: str) -> str:
    """The message about an object that was created and no longer exists; empty if it exists."""
    if external is None or not external.is_missing or not once:
        return ""
    return f"{external.reference.kind} has been deleted after being {flag}"


def _with_infrastructure(observed: Observed, known: Progress) -> Progress:
    external, deleting = observed.infrastructure, is_deleting(observed.cluster)
    if external is None:
        # Only a topology sets the reference later.
        is_bare = not observed.has_topology and not deleting
        return replace(known, infrastructure_provisioned=known.infrastructure_provisioned or is_bare)
    if not external.exists or external.is_deleting:
        return known
    infrastructure = InfrastructureCluster.of(external)
    if not infrastructure.provisioned and not known.infrastructure_provisioned:
        return known
    domains = tuple(
        FailureDomain(name=domain.name, control_plane=domain.control_plane, attributes=dict(domain.attributes))
        for domain in infrastructure.failure_domains
    )
    return replace(
        known,
        endpoint=_endpoint(known, infrastructure.endpoint),
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
    if not external.exists or external.is_deleting:
        return known
    plane = ControlPlane.of(external)
    if not plane.initialized and not known.control_plane_initialized:
        return known
    return replace(known, endpoint=_endpoint(known, plane.endpoint), control_plane_initialized=True)


def _endpoint(known: Progress, reported: Endpoint) -> ApiEndpoint:
    return (
        known.endpoint
        if known.has_endpoint or not reported.is_valid
        else ApiEndpoint(host=reported.host, port=reported.port)
    )
