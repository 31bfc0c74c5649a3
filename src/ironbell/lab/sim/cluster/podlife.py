"""Deletes the pods of deleted nodes, and their volumes' attachments.

Source: kubernetes/kubernetes: pkg/controller/podgc/gc_controller.go, pkg/controller/volume/attachdetach.
"""

from __future__ import annotations

import msgspec

from ironbell.api.client import Api, ApiError, EventType, ListOptions, NotFound, Selector
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.objects import NODES, PODS


async def collect_pods(cluster: SimCluster) -> None:
    """Delete the pods of nodes that are deleted, until cancelled."""
    while True:
        try:
            async with cluster.inside() as api:
                version = (await api.list(NODES)).resource_version
                async for event in api.changes(NODES, resource_version=version):
                    if event.type is EventType.DELETED:
                        await _delete_pods(api, msgspec.json.decode(event.body)["metadata"]["name"])
        except ApiError:
            await cluster.closed()


async def _delete_pods(api: Api, node: str) -> None:
    for body in (await api.list(PODS, "", ListOptions(Selector(fields=f"spec.nodeName={node}")))).items:
        meta = msgspec.json.decode(body)["metadata"]
        try:
            await api.delete(PODS, meta["namespace"], meta["name"])
        except NotFound:
            continue
