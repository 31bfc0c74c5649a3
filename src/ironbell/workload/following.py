"""Which clusters there are to connect to, from the caches of a manager: those that have a kubeconfig Secret.

Call `follow` before the manager runs; it adds Clusters, Machines and Secrets (without their contents) to what the
manager holds. A cluster is forgotten when it is gone or its kubeconfig is. One that does not answer is tried at once
when its endpoint is set, its infrastructure comes up, or a Machine of its control plane has come a step further; and
often from then on when its control plane is initialized, or the host of such a Machine has an operating system.
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
from ironbell.kube.cache.caches import Informers
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.link import ReadKubeconfig

_HOST, _DATA = "InfrastructureReady", "BootstrapConfigReady"
"""Conditions of a Machine in which its providers say how far its host is."""
_NOT_YET: Final = frozenset(
    {
        *("WaitingForOwner", "WaitingForCluster", "WaitingForClusterInfrastructure", "WaitingForBootstrapData"),
        *("WaitingForHardware", "WaitingForTurn", "GivingUserData", "Installing", "Retrying"),
    }
)
"""Reasons of hosts that have no operating system yet: one in place of another says nothing of an API server."""


def follow(workloads: Workloads, informers: Informers) -> None:
    """Tell `workloads` of every cluster from now on."""
    clusters, machines, secrets = informers.of(CLUSTER), informers.of(MACHINE), informers.of(SECRET_METADATA)

    may_answer: set[Key] = set()
    """Clusters of which a Machine said so before there was a connection to hold: after a start, in any order."""

    def tell(cluster: Key, is_there: bool) -> None:
        if is_there:
            may_answer.add(cluster)
            workloads.nudge(cluster)
        else:
            workloads.look(cluster)

    def look(cluster: Key) -> None:
        secret = secrets.store.get((cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG)))
        found = clusters.store.get(cluster)
        if secret is None or found is None:
            workloads.forget(cluster)
            return
        workloads.follow(ClusterKey.of(found), secret.metadata.resource_version)
        if found.status.initialization.control_plane_initialized or cluster in may_answer:
            workloads.nudge(cluster)

    def cluster_changed(old: Cluster | None, new: Cluster | None) -> None:
        cluster = new or old
        if cluster is None:
            return
        if old is None or new is None:
            if new is None:
                may_answer.discard(cluster.key)
            look(cluster.key)
        elif _of_cluster(old) != _of_cluster(new):
            tell(cluster.key, bool(new.status.initialization.control_plane_initialized))

    def machine_changed(old: Machine | None, new: Machine | None) -> None:
        if new is None or LABEL_CONTROL_PLANE not in new.metadata.labels:
            return
        is_there = _may_answer(new)
        if is_there if old is None else _of_machine(old) != _of_machine(new):
            tell((new.metadata.namespace, new.spec.cluster_name), is_there)

    def secret_changed(old: SecretMetadata | None, new: SecretMetadata | None) -> None:
        secret = new or old
        parsed = parse_secret_name(secret.metadata.name) if secret is not None else None
        if secret is not None and parsed is not None and parsed[1] is Purpose.KUBECONFIG:
            look((secret.metadata.namespace, parsed[0]))

    clusters.add_handler(cluster_changed)
    machines.add_handler(machine_changed)
    secrets.add_handler(secret_changed)


def _of_cluster(cluster: Cluster) -> tuple[Any, ...]:
    """What changes when its API may have come up."""
    return cluster.spec.control_plane_endpoint, cluster.status.initialization


def _of_machine(machine: Machine) -> tuple[Any, ...]:
    """What changes when the API server on it may have come up."""
    reported = [
        (it.type, it.status, it.reason)
        for it in machine.status.conditions
        if (it.type == _HOST and it.reason not in _NOT_YET) or (it.type == _DATA and it.status == "True")
    ]
    return machine.spec.provider_id, machine.status.initialization, machine.status.addresses, sorted(reported)


def _may_answer(machine: Machine) -> bool:
    """Whether its host may have an operating system by now, as far as its provider says."""
    if machine.spec.provider_id or machine.status.initialization.infrastructure_provisioned:
        return True
    return any(
        it.type == _HOST and (it.status == "True" or it.reason not in _NOT_YET) for it in machine.status.conditions
    )


def kubeconfigs_from(api: Api) -> ReadKubeconfig:
    """Reads kubeconfigs out of the management cluster's Secrets."""

    async def read(cluster: Key) -> bytes:
        secret = await Client(api).get(SECRET, cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG))
        try:
            content = value_of(secret, VALUE)
        except SecretUnusableError as error:
            raise ConnectionConfigError(error.message) from error
        if not content:
            raise ConnectionConfigError(f"Secret {'/'.join(secret.key)} has no data.{VALUE}: put the kubeconfig there")
        return content

    return read
