"""Identity of a workload cluster."""

from __future__ import annotations

from dataclasses import dataclass

from ironbell.api.cluster.cluster import Cluster
from ironbell.kube.decision import Key


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """Identity of a Cluster, distinct from a later one of the same name.

    Every query and effect names its workload cluster by this key. So facts about a deleted Cluster are never used for
    the next one of its name, and effects for the one never reach the other.
    """

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, cluster: Cluster) -> ClusterKey:
        """Return the key of a Cluster."""
        return cls(*cluster.key, cluster.metadata.uid)

    @classmethod
    def named(cls, namespace: str, name: str, cluster: Cluster | None) -> ClusterKey:
        """Return the key of the current Cluster of this name; if it does not exist, a key that matches no cluster."""
        return cls(namespace, name, "") if cluster is None else cls.of(cluster)

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return (self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
