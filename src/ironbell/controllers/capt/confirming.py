"""Whether a machine of a cluster still has the server that a restored record says it has.

Yes, if the very Node that the Machine had in the backup is there and Ready, is older than the backup, and names this
server: then nothing has been installed on it since. Anything else is left to a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.client import Api
from ironbell.api.cluster.machine import Machine
from ironbell.api.core import NODE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.restored import Restored, confirmation
from ironbell.controllers.capt.provider_id import provider_id
from ironbell.kube.client import Client
from ironbell.kube.decision import Key, MergePatch, Need, Question, patch
from ironbell.kube.reconciler import Askers
from ironbell.workload.following import kubeconfigs_from
from ironbell.workload.kubeconfigs import http_link
from ironbell.workload.link import Connect, ReadKubeconfig
from ironbell.workload.questions import NodeView, node_view

ASK_AGAIN_S: Final = 60.0
ANNOTATION_MACHINE: Final = "cluster.x-k8s.io/machine"
"""On a Node: name of its Machine."""


@dataclass(frozen=True, slots=True)
class NodeNow(Question["NodeView | None"]):
    """A node as its cluster shows it now; None if there is none of that name."""

    cluster: Key
    name: str


def question(machine: Machine | None) -> NodeNow | None:
    """What is to be known; None for a Machine that had no Node yet."""
    if machine is None or not machine.status.node_ref.name:
        return None
    return NodeNow((machine.metadata.namespace, machine.spec.cluster_name), machine.status.node_ref.name)


def need(asked: NodeNow) -> Need[NodeView | None]:
    """The same, for a decision."""
    return Need(asked, ASK_AGAIN_S)


def still_runs(node: NodeView | None, machine: Machine, hardware: Hardware, found: Restored) -> bool:
    """Whether this Node is what ran on this server when the backup was made."""
    if node is None or node.deleting or not found.backup:
        return False
    ready = node.condition("Ready")
    try:
        is_older = parse_rfc3339(node.creation_timestamp) < parse_rfc3339(found.backup)
    except ValueError:
        return False
    return (
        is_older
        and ready is not None
        and ready.status == "True"
        and node.provider_id == provider_id(hardware)
        and node.annotations.get(ANNOTATION_MACHINE, machine.metadata.name) == machine.metadata.name
    )


def confirmed(hardware: Hardware) -> MergePatch:
    """The write that lets the server go."""
    return patch(HARDWARE, hardware, {"metadata": {"annotations": confirmation(hardware)}}, locked=True)


def askers(api: Api, connect: Connect = http_link) -> Askers:
    """Who answers; `api` is that of an identity that may read Secrets."""
    return {NodeNow: _NodesNow(kubeconfigs_from(api), connect).answer}


@dataclass(frozen=True)
class _NodesNow:
    read: ReadKubeconfig
    connect: Connect

    async def answer(self, asked: NodeNow) -> NodeView | None:
        link = self.connect(asked.cluster, await self.read(asked.cluster))
        try:
            node = await Client(link.api).find(NODE, "", asked.name)
        finally:
            await link.close()
        return node_view(node) if node is not None else None
