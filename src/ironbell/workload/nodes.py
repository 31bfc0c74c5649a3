"""Rare reads and writes of single Nodes in workload clusters, with the cluster's kubeconfig."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from ironbell.api.client import Api, Conflict, Invalid, NotFound, PatchType
from ironbell.api.core import NODE
from ironbell.kube.client import Client
from ironbell.kube.decision import Action, Query
from ironbell.kube.manager.act import OutOfDate
from ironbell.kube.reconciler import Performers, Resolvers
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.following import kubeconfigs_from
from ironbell.workload.kubeconfigs import http_link
from ironbell.workload.link import Connect, Link
from ironbell.workload.queries import NodeView, node_view

SET_PROVIDER_ID: Final = "tell-node"


@dataclass(frozen=True, slots=True)
class NodeNow(Query["NodeView | None"]):
    """Query for the current state of a Node; None if it does not exist."""

    subject: ClassVar[str] = "the Node"

    cluster: ClusterKey
    name: str


@dataclass(frozen=True, slots=True)
class SetProviderId:
    """Set the provider ID of a Node without one, if it is still the observed Node. A provider ID cannot be changed."""

    cluster: ClusterKey
    node: str
    uid: str
    provider_id: str


@dataclass(frozen=True)
class Nodes:
    """Connections to the clusters of Nodes; `api` is that of an identity that may read Secrets."""

    api: Api
    connect: Connect = http_link

    def resolvers(self) -> Resolvers:
        """Return the resolvers of the queries."""
        return {NodeNow: self._resolve}

    def performers(self) -> Performers:
        """Return the performers of the effects."""
        return {SET_PROVIDER_ID: self._set_provider_id}

    @asynccontextmanager
    async def _link(self, cluster: ClusterKey) -> AsyncIterator[Link]:
        link = self.connect(cluster.key, await kubeconfigs_from(self.api)(cluster.key))
        try:
            await link.probe()
            yield link
        finally:
            await link.close()

    async def _resolve(self, query: NodeNow) -> NodeView | None:
        async with self._link(query.cluster) as link:
            node = await Client(link.api).find(NODE, "", query.name)
        return node_view(node) if node is not None else None

    async def _set_provider_id(self, arguments: SetProviderId) -> Sequence[Action]:
        change = {"metadata": {"uid": arguments.uid}, "spec": {"providerID": arguments.provider_id}}
        body = msgspec.json.encode(change)
        async with self._link(arguments.cluster) as link:
            try:
                await link.api.patch(NODE.collection, "", arguments.node, body, patch_type=PatchType.MERGE)
            except NotFound:
                return ()
            except (Conflict, Invalid) as error:
                raise OutOfDate(error.message) from error
        return ()
