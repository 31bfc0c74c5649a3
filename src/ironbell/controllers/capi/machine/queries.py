"""Queries of a deletion to a workload cluster, and their answers. Pods and volumes are never cached.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go, drain/drain.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ironbell.api.client import Api, NotFound, Selector
from ironbell.api.core.node import NODE
from ironbell.api.meta import OwnerReference
from ironbell.base.clock import parse_rfc3339
from ironbell.base.errors import IronbellError
from ironbell.controllers.capi.machine.drain.pods import Outcome, PodsOfNode, PodView
from ironbell.controllers.capi.machine.drain.volumes import VolumesOfNode, VolumeView
from ironbell.controllers.capi.machine.evictions import Ledger
from ironbell.controllers.capi.machine.workload_objects import (
    DAEMON_SET,
    NAMESPACE_LABELS,
    NODE_VOLUMES,
    PERSISTENT_VOLUME,
    POD,
    VOLUME_ATTACHMENT,
    PersistentVolume,
    Pod,
)
from ironbell.kube.client import Client
from ironbell.kube.decision import Key, Query
from ironbell.kube.reconciler import Resolvers
from ironbell.workload.clusterkey import ClusterKey

REFRESH_S: Final = 10.0
"""Maximum age of the facts about a node's pods and volumes."""
_FINISHED: Final = ("Succeeded", "Failed")
_MIRROR: Final = "kubernetes.io/config.mirror"

ApiOf = Callable[[ClusterKey], Coroutine[Any, Any, Api]]
"""The API of a workload cluster; raises `NotConnected`."""


@dataclass(frozen=True, slots=True)
class PodsOn(Query[PodsOfNode]):
    """The pods of a node."""

    subject: ClassVar[str] = "the list of the Node's pods"

    cluster: ClusterKey
    node: str


@dataclass(frozen=True, slots=True)
class VolumesOn(Query[VolumesOfNode]):
    """The attachments of a node."""

    subject: ClassVar[str] = "the list of the Node's volumes"

    cluster: ClusterKey
    node: str


@dataclass(frozen=True, slots=True)
class Evicted(Query[tuple[Outcome, ...]]):
    """The outcomes of the latest evictions on a node. Only this process knows them; evicting again is harmless."""

    subject: ClassVar[str] = "the result of the evictions"

    cluster: ClusterKey
    node: str


@dataclass(frozen=True, slots=True)
class NodesNow(Query[tuple[str, ...]]):
    """Names of the nodes with this provider ID, read from the cluster itself, as cached facts may be outdated."""

    subject: ClassVar[str] = "the list of Nodes"

    cluster: ClusterKey
    provider_id: str


class UnreadableAttachmentError(IronbellError):
    """A VolumeAttachment does not name its volume."""

    reason = "UnreadableVolumeAttachment"


def resolvers(api_of: ApiOf, ledger: Ledger) -> Resolvers:
    """The functions that answer these queries."""

    async def pods_on(query: PodsOn) -> PodsOfNode:
        return await read_pods(await api_of(query.cluster), query.node)

    async def volumes_on(query: VolumesOn) -> VolumesOfNode:
        return await read_volumes(await api_of(query.cluster), query.node)

    async def evicted(query: Evicted) -> tuple[Outcome, ...]:
        return ledger.outcomes(query.cluster, query.node)

    async def nodes_now(query: NodesNow) -> tuple[str, ...]:
        nodes = (await Client(await api_of(query.cluster)).list(NODE)).items
        return tuple(sorted(node.metadata.name for node in nodes if node.spec.provider_id == query.provider_id))

    return {PodsOn: pods_on, VolumesOn: volumes_on, Evicted: evicted, NodesNow: nodes_now}


async def read_pods(api: Api, node: str) -> PodsOfNode:
    """All pods of a node with the facts that draining needs. Cancellation point.

    Raises:
        ApiError: the cluster did not answer.
    """
    client = Client(api)
    pods = (await client.list(POD, selector=Selector(fields=f"spec.nodeName={node}"))).items
    if not pods:
        return PodsOfNode()
    namespaces = (await client.list(NAMESPACE_LABELS)).items
    daemons = {(pod.metadata.namespace, owner.name) for pod in pods if (owner := _daemon_set(pod)) is not None}
    daemon_sets = await _existing(api, daemons)
    return PodsOfNode(
        tuple(_view(pod, daemon_sets) for pod in pods),
        {namespace.metadata.name: namespace.metadata.labels for namespace in namespaces},
    )


async def read_volumes(api: Api, node: str) -> VolumesOfNode:
    """The attachments of a node; a node that does not exist has none. Cancellation point.

    Raises:
        ApiError: the cluster did not answer.
        UnreadableAttachmentError: an attachment names no volume.
    """
    client = Client(api)
    node_volumes = await client.find(NODE_VOLUMES, "", node)
    if node_volumes is None:
        return VolumesOfNode()
    names = tuple(volume.name for volume in node_volumes.status.volumes_attached)
    attached: list[str] = []
    for attachment in (await client.list(VOLUME_ATTACHMENT)).items:
        if attachment.status.attached and attachment.spec.node_name == node:
            volume = attachment.spec.source.persistent_volume_name
            if volume is None:
                raise UnreadableAttachmentError(
                    f"spec.source.persistentVolumeName for VolumeAttachment {attachment.metadata.name} is not set"
                )
            attached.append(volume)
    if not names and not attached:
        return VolumesOfNode()
    volumes = (await client.list(PERSISTENT_VOLUME)).items
    return VolumesOfNode(names, tuple(attached), tuple(_volume(volume) for volume in volumes))


async def _existing(api: Api, daemons: Iterable[Key]) -> set[Key]:
    async def exists(key: Key) -> Key | None:
        try:
            await api.get(DAEMON_SET.collection, *key)
        except NotFound:
            return None
        return key

    return {key for key in await asyncio.gather(*map(exists, sorted(daemons))) if key is not None}


def _view(pod: Pod, daemons: set[Key]) -> PodView:
    meta, owner = pod.metadata, _daemon_set(pod)
    return PodView(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        labels=meta.labels,
        of_daemon_set=owner is not None and (meta.namespace, owner.name) in daemons,
        finished=pod.status.phase in _FINISHED,
        mirror=_MIRROR in meta.annotations,
        deletion=parse_rfc3339(meta.deletion_timestamp) if meta.deletion_timestamp else None,
        claims=tuple(
            volume.persistent_volume_claim.claim_name
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ),
    )


def _daemon_set(pod: Pod) -> OwnerReference | None:
    owners = pod.metadata.owner_references
    return next((owner for owner in owners if owner.controller and owner.kind == DAEMON_SET.kind), None)


def _volume(volume: PersistentVolume) -> VolumeView:
    csi, claim = volume.spec.csi, volume.spec.claim_ref
    return VolumeView(
        volume.metadata.name,
        f"kubernetes.io/csi/{csi.driver}^{csi.volume_handle}" if csi is not None else "",
        f"{claim.namespace}/{claim.name}" if claim is not None and claim.kind == "PersistentVolumeClaim" else "",
    )
