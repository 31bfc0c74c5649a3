"""The Clusters of a namespace, each with its summary."""

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
    """A Cluster, and its desired Kubernetes version."""

    cluster: Object
    version: str = ""

    @property
    def standing(self) -> Standing:
        """The summary condition of the Cluster."""
        return standing(self.cluster)

    def replicas(self, part: str) -> tuple[int, int]:
        """Number of ready Machines of `controlPlane` or `workers`, and the desired number."""
        status = self.cluster.get("status", {}).get(part) or {}
        return status.get("readyReplicas") or 0, status.get("desiredReplicas") or 0

    def plain(self) -> dict[str, Any]:
        """The summary as values for JSON."""
        meta, state = self.cluster["metadata"], self.standing
        parts = {
            part: dict(zip(("readyReplicas", "desiredReplicas"), self.replicas(part), strict=True))
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
    """The Clusters of a namespace, or of all if it is empty, by namespace and name; each kind is listed once."""
    discovered = Discovered(api)
    clusters = await discovered.labelled(CLUSTER.collection, namespace, "")
    planes: dict[tuple[str, str, str, str], Object] = {}
    for group, kind in sorted({_plane_key(cluster)[:2] for cluster in clusters if _plane_key(cluster)[3]}):
        try:
            where = await discovered.collection(group, kind)
        except NoSuchKindError:
            continue  # its provider is not installed: the version is unknown
        for plane in await discovered.labelled(where, namespace, ""):
            planes[group, kind, plane["metadata"].get("namespace", ""), object_name(plane)] = plane
    result = [Summary(item, version(item) or version(planes.get(_plane_key(item), {}))) for item in clusters]
    return sorted(result, key=lambda item: (item.cluster["metadata"].get("namespace", ""), object_name(item.cluster)))


async def summary(api: HttpApi, namespace: str, name: str) -> Summary:
    """The summary of one Cluster.

    Raises:
        NoClusterError: there is no Cluster of this name.
    """
    snapshot = await read(api, namespace, name)
    return Summary(snapshot.cluster, version(snapshot.cluster) or version(snapshot.control_plane or {}))


def _plane_key(cluster: Object) -> tuple[str, str, str, str]:
    reference = cluster.get("spec", {}).get("controlPlaneRef") or {}
    names = [str(reference.get(name, "")) for name in ("apiGroup", "kind", "name")]
    return names[0], names[1], cluster["metadata"].get("namespace", ""), names[2]
