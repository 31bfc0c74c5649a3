"""The clusters to connect to, from the caches of a manager: those with a kubeconfig Secret.

Call `follow` before the manager runs; it adds Clusters, Machines and Secrets (without their contents) to the manager's
caches. A cluster is forgotten when it or its kubeconfig was deleted. A cluster that does not respond is tried at once
when its endpoint is set, its infrastructure is provisioned, or a Machine of its control plane has progressed; and often
from then on when its control plane is initialized, or the host of such a Machine has an operating system.
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.core.secret import SECRET, SECRET_METADATA, SecretMetadata
from ironbell.contract.clusters.secrets import (
    VALUE,
    Purpose,
    SecretUnusableError,
    parse_secret_name,
    secret_name,
    value_of,
)
from ironbell.contract.system import Runtime
from ironbell.kube.cache.caches import Informers
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.kubeconfigs import http_link
from ironbell.workload.link import ReadKubeconfig

WORKLOAD_ACCESS: Final = "workload-access"
"""The identity that reads the kubeconfigs of workload clusters."""
_HOST, _DATA = "InfrastructureReady", "BootstrapConfigReady"
"""Conditions of a Machine in which its providers report the progress of its host."""
_NOT_YET: Final = frozenset(
    {
        *("WaitingForOwner", "WaitingForCluster", "WaitingForClusterInfrastructure", "WaitingForBootstrapData"),
        *("WaitingForHardware", "WaitingForTurn", "GivingUserData", "Installing", "Retrying"),
    }
)
"""Reasons of hosts without an operating system: a change between them does not indicate an API server."""


def follow(workloads: Workloads, informers: Informers) -> None:
    """Make `workloads` follow every cluster from now on."""
    clusters, machines, secrets = informers.of(CLUSTER), informers.of(MACHINE), informers.of(SECRET_METADATA)

    may_answer: set[Key] = set()
    """Clusters with such a Machine that was seen before the kubeconfig: after a start, events come in any order."""

    def wake(cluster: Key, is_likely_up: bool) -> None:
        if is_likely_up:
            may_answer.add(cluster)
            workloads.nudge(cluster)
        else:
            workloads.try_once(cluster)

    def update(cluster: Key) -> None:
        secret = secrets.store.get((cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG)))
        current = clusters.store.get(cluster)
        if secret is None or current is None:
            workloads.forget(cluster)
            return
        workloads.follow(ClusterKey.of(current), secret.metadata.resource_version)
        if current.status.initialization.control_plane_initialized or cluster in may_answer:
            workloads.nudge(cluster)

    def cluster_changed(old: Cluster | None, new: Cluster | None) -> None:
        cluster = new or old
        if cluster is None:
            return
        if old is None or new is None:
            if new is None:
                may_answer.discard(cluster.key)
            update(cluster.key)
        elif _cluster_fields(old) != _cluster_fields(new):
            wake(cluster.key, bool(new.status.initialization.control_plane_initialized))

    def machine_changed(old: Machine | None, new: Machine | None) -> None:
        if new is None or LABEL_CONTROL_PLANE not in new.metadata.labels:
            return
        is_likely_up = _may_answer(new)
        if is_likely_up if old is None else _machine_fields(old) != _machine_fields(new):
            wake((new.metadata.namespace, new.spec.cluster_name), is_likely_up)

    def secret_changed(old: SecretMetadata | None, new: SecretMetadata | None) -> None:
        secret = new or old
        parsed = parse_secret_name(secret.metadata.name) if secret is not None else None
        if secret is not None and parsed is not None and parsed[1] is Purpose.KUBECONFIG:
            update((secret.metadata.namespace, parsed[0]))

    clusters.add_handler(cluster_changed)
    machines.add_handler(machine_changed)
    secrets.add_handler(secret_changed)


def _cluster_fields(cluster: Cluster) -> tuple[Any, ...]:
    """Return the fields that change when the API may have started."""
    return cluster.spec.control_plane_endpoint, cluster.status.initialization


def _machine_fields(machine: Machine) -> tuple[Any, ...]:
    """Return the fields that change when the API server on a Machine may have started."""
    reported = [
        (condition.type, condition.status, condition.reason)
        for condition in machine.status.conditions
        if (condition.type == _HOST and condition.reason not in _NOT_YET)
        or (condition.type == _DATA and condition.status == "True")
    ]
    return machine.spec.provider_id, machine.status.initialization, machine.status.addresses, sorted(reported)


def _may_answer(machine: Machine) -> bool:
    """Return whether a Machine's host may have an operating system, according to its provider."""
    if machine.spec.provider_id or machine.status.initialization.infrastructure_provisioned:
        return True
    return any(
        condition.type == _HOST and (condition.status == "True" or condition.reason not in _NOT_YET)
        for condition in machine.status.conditions
    )


def kubeconfigs_from(api: Api) -> ReadKubeconfig:
    """Return a function that reads kubeconfigs from the management cluster's Secrets."""

    async def read(cluster: Key) -> bytes:
        secret = await Client(api).get(SECRET, cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG))
        try:
            content = value_of(secret, VALUE)
        except SecretUnusableError as error:
            raise ConnectionConfigError(error.message) from error
        if not content:
            raise ConnectionConfigError(f"Secret {'/'.join(secret.key)} has no data.{VALUE}: add the kubeconfig")
        return content

    return read


def workloads_of(runtime: Runtime) -> Workloads:
    """Create connections to all workload clusters that have a kubeconfig; for `Runtime.shared`."""
    kubeconfigs = kubeconfigs_from(runtime.own_api(WORKLOAD_ACCESS))
    connections = Workloads(http_link, kubeconfigs, clock=runtime.clock, randomness=runtime.randomness)
    follow(connections, runtime.informers)
    return connections
