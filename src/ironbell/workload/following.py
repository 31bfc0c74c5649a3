"""Which clusters there are to connect to, from the caches of a manager: those that have a kubeconfig Secret.

Call `follow` before the manager runs; it adds Clusters and Secrets (without their contents) to what the manager holds.
A cluster is forgotten when it is gone or its kubeconfig is. When its infrastructure or control plane comes up it is
tried at once.
"""

from __future__ import annotations

from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.core.secret import SECRET, SECRET_METADATA, SecretMetadata
from ironbell.contract.cluster_secrets import (
    VALUE,
    Purpose,
    SecretUnusableError,
    parse_secret_name,
    secret_name,
    value_of,
)
from ironbell.kube.caches import Informers
from ironbell.kube.client import Client
from ironbell.kube.decision import Key
from ironbell.kube.tokens import ConnectionConfigError
from ironbell.workload.access import Workloads
from ironbell.workload.link import ReadKubeconfig


def follow(workloads: Workloads, informers: Informers) -> None:
    """Tell `workloads` of every cluster from now on."""
    clusters, secrets = informers.of(CLUSTER), informers.of(SECRET_METADATA)

    def look(cluster: Key) -> None:
        secret = secrets.store.get((cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG)))
        if secret is None or clusters.store.get(cluster) is None:
            workloads.forget(cluster)
        else:
            workloads.follow(cluster, secret.metadata.resource_version)

    def cluster_changed(old: Cluster | None, new: Cluster | None) -> None:
        cluster = new or old
        if cluster is None:
            return
        if old is None or new is None:
            look(cluster.key)
        elif old.status.initialization != new.status.initialization:
            workloads.nudge(cluster.key)

    def secret_changed(old: SecretMetadata | None, new: SecretMetadata | None) -> None:
        secret = new or old
        parsed = parse_secret_name(secret.metadata.name) if secret is not None else None
        if secret is not None and parsed is not None and parsed[1] is Purpose.KUBECONFIG:
            look((secret.metadata.namespace, parsed[0]))

    clusters.add_handler(cluster_changed)
    secrets.add_handler(secret_changed)


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
