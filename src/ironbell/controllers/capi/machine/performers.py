"""Effects of the Machine controller in a workload cluster. Each may be carried out twice without harm.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go, machine_controller_noderef.go,
drain/drain.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from ironbell.api.client import Api, Conflict, NotFound, PatchType
from ironbell.api.cluster.machine import MACHINE
from ironbell.api.core.node import NODE
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.controllers.capi.machine.evictions import Ledger, PodToEvict, evict
from ironbell.controllers.capi.machine.queries import ApiOf
from ironbell.kube.decision import Action, Emit, Key
from ironbell.kube.manager.act import OutOfDate
from ironbell.kube.reconciler import Performers
from ironbell.workload.clusterkey import ClusterKey

PATCH_NODE: Final = "patch-node"
CORDON: Final = "cordon-node"
EVICT: Final = "evict-pods"
DELETE_NODE: Final = "delete-node"

EVICT_TIMEOUT_S: Final = 30.0
DELETE_TIMEOUT_S: Final = 20.0
_DELETE_FOR_S: Final = 10.0
_DELETE_EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class NodePatch:
    """A merge patch for a Node, with its uid and resourceVersion as precondition."""

    cluster: ClusterKey
    node: str
    body: bytes


@dataclass(frozen=True, slots=True)
class CordonArguments:
    """The Node that is to accept no more pods."""

    cluster: ClusterKey
    node: str


@dataclass(frozen=True, slots=True)
class EvictArguments:
    """The pods to evict from their node."""

    cluster: ClusterKey
    node: str
    pods: tuple[PodToEvict, ...]
    grace_s: int | None = None
    """Grace period instead of each pod's own, for nodes whose kubelet does not end pods."""


@dataclass(frozen=True, slots=True)
class DeleteNodeArguments:
    """The Node to delete, and its Machine."""

    cluster: ClusterKey
    node: str
    machine: Key
    machine_uid: str
    give_up_at: datetime | None
    """Time after which the Machine is deleted although its Node remains; None is never."""


def performers(api_of: ApiOf, ledger: Ledger, clock: Clock) -> Performers:
    """The functions that carry the effects out."""

    async def patch_node(arguments: NodePatch) -> Sequence[Action]:
        await _patch(await api_of(arguments.cluster), arguments.node, arguments.body)
        return ()

    async def cordon(arguments: CordonArguments) -> Sequence[Action]:
        body = msgspec.json.encode({"spec": {"unschedulable": True}})
        await _patch(await api_of(arguments.cluster), arguments.node, body)
        return ()

    async def evict_pods(arguments: EvictArguments) -> Sequence[Action]:
        api = await api_of(arguments.cluster)
        outcomes = await evict(api, arguments.pods, clock, grace_s=arguments.grace_s)
        ledger.record(arguments.cluster, arguments.node, outcomes)
        return ()

    async def delete_node(arguments: DeleteNodeArguments) -> Sequence[Action]:
        try:
            await _delete_within(arguments, api_of, clock)
        except IronbellError as error:
            if arguments.give_up_at is None or clock.now() < arguments.give_up_at:
                raise
            return (_left_behind(arguments, error),)
        ledger.forget(arguments.cluster, arguments.node)
        return ()

    return {PATCH_NODE: patch_node, CORDON: cordon, EVICT: evict_pods, DELETE_NODE: delete_node}


async def _patch(api: Api, node: str, body: bytes) -> None:
    """Patch a Node, which may have been deleted; after a conflict the Machine is reconciled again."""
    try:
        await api.patch(NODE.collection, "", node, body, patch_type=PatchType.MERGE)
    except NotFound:
        return
    except Conflict as error:
        raise OutOfDate(error.message) from error


async def _delete_within(arguments: DeleteNodeArguments, api_of: ApiOf, clock: Clock) -> None:
    """Retry for some seconds: with the usual time limit there is no later attempt."""
    end_s = clock.monotonic() + _DELETE_FOR_S
    while True:
        try:
            api = await api_of(arguments.cluster)
            await api.delete(NODE.collection, "", arguments.node)
        except NotFound:
            return
        except IronbellError:
            if clock.monotonic() + _DELETE_EVERY_S >= end_s:
                raise
            await asyncio.sleep(_DELETE_EVERY_S)
        else:
            return


def _left_behind(arguments: DeleteNodeArguments, error: IronbellError) -> Emit:
    message = f"error deleting Machine's Node: {error.message}; Node {arguments.node} remains in the cluster"
    return Emit(
        MACHINE, *arguments.machine, arguments.machine_uid, reason="FailedDeleteNode", message=message, type="Warning"
    )
