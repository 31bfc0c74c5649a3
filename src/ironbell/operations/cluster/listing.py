"""The Clusters of a namespace, each with what sums it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.api.cluster import CLUSTER
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.snapshot import object_name, read
from ironbell.operations.cluster.status import Standing, standing, version
from ironbell.operations.discovered import Discovered, NoSuchKindError, Object


@dataclass(frozen=True)
class Summary:
    """A Cluster, and the Kubernetes version that it is to have."""

    cluster: Object
    version: str = ""

    @property
    def standing(self) -> Standing:
        """The condition that sums it up."""
        return standing(self.cluster)

    def share(self, part: str) -> tuple[int, int]:
        """How many Machines of `controlPlane` or `workers` are ready, and how many are to be."""
        status = self.cluster.get("status", {}).get(part) or {}
        return status.get("readyReplicas") or 0, status.get("desiredReplicas") or 0

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        meta, state = self.cluster["metadata"], self.standing
        parts = {
            part: dict(zip(("readyReplicas", "desiredReplicas"), self.share(part), strict=True))
            for part in ("controlPlane", "workers")
        }
        return {
            "kind": CLUSTER.kind,
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "version": self.version,
            **parts,
            "condition": state.type,
            "status": state.status,
            "reason": state.reason,
            "message": state.message,
            "creationTimestamp": meta.get("creationTimestamp", ""),
        }


async def summaries(api: HttpApi, namespace: str) -> list[Summary]:
    """The Clusters of a namespace, or of all with an empty one, by namespace and name; one list for each kind."""
    discovered = Discovered(api)
    clusters = await discovered.labelled(CLUSTER.collection, namespace, "")
    planes: dict[tuple[str, str, str, str], Object] = {}
    for group, kind in sorted({_plane_key(cluster)[:2] for cluster in clusters if _plane_key(cluster)[3]}):
        try:
            where = await discovered.collection(group, kind)
        except NoSuchKindError:
            continue  # its provider is not installed: the version is not known
        for plane in await discovered.labelled(where, namespace, ""):
            planes[group, kind, plane["metadata"].get("namespace", ""), object_name(plane)] = plane
    found = [Summary(one, version(one) or version(planes.get(_plane_key(one), {}))) for one in clusters]
    return sorted(found, key=lambda one: (one.cluster["metadata"].get("namespace", ""), object_name(one.cluster)))


async def summary(api: HttpApi, namespace: str, name: str) -> Summary:
    """One Cluster.

    Raises:
        NoClusterError: there is none of this name.
    """
    found = await read(api, namespace, name)
    return Summary(found.cluster, version(found.cluster) or version(found.control_plane or {}))


def _plane_key(cluster: Object) -> tuple[str, str, str, str]:
    reference = cluster.get("spec", {}).get("controlPlaneRef") or {}
    names = [str(reference.get(name, "")) for name in ("apiGroup", "kind", "name")]
    return names[0], names[1], cluster["metadata"].get("namespace", ""), names[2]
