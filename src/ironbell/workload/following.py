"""Which clusters there are to connect to, from the caches of a manager: those that have a kubeconfig Secret.

Call `follow` before the manager runs; it adds Clusters and Secrets to what the manager holds. A cluster is forgotten
when it is gone or its kubeconfig is. When its infrastructure or control plane comes up it is tried at once.
"""

from __future__ import annotations

import structlog

from ironbell.api.cluster import CLUSTER
from ironbell.api.cluster.cluster import Cluster, ClusterInitializationStatus
from ironbell.api.core.secret import SECRET, Secret
from ironbell.contract.cluster_secrets import (
    VALUE,
    Purpose,
    SecretUnusableError,
    parse_secret_name,
    secret_name,
    value_of,
)
from ironbell.kube.caches import Informers
from ironbell.kube.decision import Key
from ironbell.workload.access import Workloads

log = structlog.get_logger()


def follow(workloads: Workloads, informers: Informers) -> None:
    """Tell `workloads` of every cluster from now on."""
    clusters, secrets = informers.of(CLUSTER), informers.of(SECRET)

    def look(cluster: Key) -> None:
        secret = secrets.store.get((cluster[0], secret_name(cluster[1], Purpose.KUBECONFIG)))
        kubeconfig = _kubeconfig(secret) if secret is not None else None
        if kubeconfig is None or clusters.store.get(cluster) is None:
            workloads.forget(cluster)
        else:
            workloads.follow(cluster, kubeconfig)

    def cluster_changed(old: Cluster | None, new: Cluster | None) -> None:
        cluster = new or old
        if cluster is None:
            return
        if old is None or new is None:
            look(cluster.key)
        elif _initialization(old) != _initialization(new):
            workloads.nudge(cluster.key)

    def secret_changed(old: Secret | None, new: Secret | None) -> None:
        secret = new or old
        parsed = parse_secret_name(secret.metadata.name) if secret is not None else None
        if secret is not None and parsed is not None and parsed[1] is Purpose.KUBECONFIG:
            look((secret.metadata.namespace, parsed[0]))

    clusters.add_handler(cluster_changed)
    secrets.add_handler(secret_changed)


def _initialization(cluster: Cluster) -> ClusterInitializationStatus:
    return cluster.status.initialization


def _kubeconfig(secret: Secret) -> bytes | None:
    try:
        return value_of(secret, VALUE)
    except SecretUnusableError as error:
        log.warning("kubeconfig not usable", secret="/".join(secret.key), cause=error.message)
        return None
