"""Clusters on the target that are paused although no source is left.

clusterctl pauses the Clusters that it moves and unpauses them last. Where it was killed just before, nothing on them
distinguishes its pause from one of a user, so they are only reported.
"""

from __future__ import annotations

from ironbell.operations.pivot.graph import Selection
from ironbell.operations.pivot.items import CLUSTER, Key, moved_kinds
from ironbell.operations.pivot.site import DEFINITIONS, Site


async def paused_clusters(target: Site, selection: Selection) -> tuple[Key, ...]:
    """The selected Clusters of the target that request a pause.

    Raises:
        SiteError: they cannot be listed.
    """
    paused = [
        cluster.key
        for kind in moved_kinds(await target.objects(DEFINITIONS))
        if kind.name == CLUSTER
        for cluster in await target.items(kind)
        if selection.has(cluster) and cluster.spec.get("paused")
    ]
    return tuple(sorted(key for key in paused if not selection.clusters or key[2] in selection.clusters))
