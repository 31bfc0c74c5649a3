"""Nodes of the machines' clusters, asked for and written to by the cluster's kubeconfig: seldom, and one at a time."""

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

TELL_NODE: Final = "tell-node"


@dataclass(frozen=True, slots=True)
class NodeNow(Query["NodeView | None"]):
    """A node as its cluster shows it now; None if there is none of that name."""

    subject: ClassVar[str] = "the Node"

    cluster: ClusterKey
    name: str


@dataclass(frozen=True, slots=True)
class TellNode:
    """Give a Node that has none its provider ID, if it is still the Node that was seen. Nobody can change one."""

    cluster: ClusterKey
    node: str
    uid: str
    provider_id: str


@dataclass(frozen=True)
class Nodes:
    """The way to them; `api` is that of an identity that may read Secrets."""

    api: Api
    connect: Connect = http_link

    def resolvers(self) -> Resolvers:
        """Who answers."""
        return {NodeNow: self._answer}

    def performers(self) -> Performers:
        """Who writes."""
        return {TELL_NODE: self._tell}

    @asynccontextmanager
    async def _link(self, cluster: ClusterKey) -> AsyncIterator[Link]:
        link = self.connect(cluster.key, await kubeconfigs_from(self.api)(cluster.key))
        try:
            await link.probe()
            yield link
        finally:
            await link.close()

    async def _answer(self, asked: NodeNow) -> NodeView | None:
        async with self._link(asked.cluster) as link:
            node = await Client(link.api).find(NODE, "", asked.name)
        return node_view(node) if node is not None else None

    async def _tell(self, arguments: TellNode) -> Sequence[Action]:
        told = {"metadata": {"uid": arguments.uid}, "spec": {"providerID": arguments.provider_id}}
        body = msgspec.json.encode(told)
        async with self._link(arguments.cluster) as link:
            try:
                await link.api.patch(NODE.collection, "", arguments.node, body, patch_type=PatchType.MERGE)
            except NotFound:
                return ()
            except (Conflict, Invalid) as error:
                raise OutOfDate(error.message) from error
        return ()
