"""Which workload cluster is meant."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.api.cluster.cluster import Cluster
from ironbell.kube.decision import Key


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """A Cluster, and not a later one of the same name.

    Whatever is asked about a workload cluster, or done to it, names it by this: an answer about a deleted Cluster is
    never read for the next one of its name, and nothing that was decided for the one reaches the other.
    """

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, cluster: Cluster) -> ClusterKey:
        """The key of a Cluster."""
        return cls(*cluster.key, cluster.metadata.uid)

    @classmethod
    def named(cls, namespace: str, name: str, cluster: Cluster | None) -> ClusterKey:
        """The key of the Cluster that has this name now; where there is none, nobody answers to it."""
        return cls(namespace, name, "") if cluster is None else cls.of(cluster)

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return (self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
