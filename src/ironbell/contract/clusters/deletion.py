"""Effects of the deletion of a Cluster on the objects that belong to it."""

from __future__ import annotations

from ironbell.api.cluster.cluster import Cluster
from ironbell.kube.finalizers import is_deleting


def creation_stopped(cluster: Cluster) -> str:
    """Return why no Machine is created for this Cluster any more, or "" if Machines may be created.

    Workers are deleted before the control plane, which takes its time: a count of Machines in the meantime would
    claim servers that nobody uses.
    """
    if not is_deleting(cluster):
        return ""
    return f"Cluster {'/'.join(cluster.key)} is being deleted: no Machine is created any more"
