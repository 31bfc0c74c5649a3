"""Evictions of pods from the nodes of workload clusters, and their outcomes. Evicting a pod twice is harmless.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain/drain.go (CordonNode, EvictPods, evictPod).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from ironbell.api.client import Api, ApiError, Forbidden, NotFound, TooManyRequests
from ironbell.base.clock import Clock
from ironbell.controllers.capi.machine.drain.pods import EVICTION_BUDGET_S, NOT_REACHED, TERMINATING_NAMESPACE, Outcome
from ironbell.controllers.capi.machine.workload_objects import POD
from ironbell.workload.clusterkey import ClusterKey

NODES_REMEMBERED: Final = 4096
_FORGET_AFTER: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class PodToEvict:
    """A pod to evict: exactly this pod, not a later one of the same name."""

    namespace: str
    name: str
    uid: str


class Ledger:
    """The outcomes of the latest evictions, by node. They decide when to retry; losing them costs a few requests."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[tuple[ClusterKey, str], dict[str, Outcome]] = OrderedDict()

    def outcomes(self, cluster: ClusterKey, node: str) -> tuple[Outcome, ...]:
        """The outcomes on a node."""
        return tuple(self._nodes.get((cluster, node), {}).values())

    def record(self, cluster: ClusterKey, node: str, outcomes: Iterable[Outcome]) -> None:
        """Record outcomes, each in place of the pod's previous outcome."""
        known = self._nodes.setdefault((cluster, node), {})
        self._nodes.move_to_end((cluster, node))
        for outcome in outcomes:
            known[outcome.uid] = outcome
        latest = max((outcome.at for outcome in known.values()), default=None)
        for uid in [
            uid for uid, outcome in known.items() if latest is not None and latest - outcome.at > _FORGET_AFTER
        ]:
            del known[uid]
        while len(self._nodes) > NODES_REMEMBERED:
            self._nodes.popitem(last=False)

    def forget(self, cluster: ClusterKey, node: str) -> None:
        """Drop the outcomes on a deleted node."""
        self._nodes.pop((cluster, node), None)


async def evict(api: Api, pods: Iterable[PodToEvict], clock: Clock, *, grace_s: int | None = None) -> list[Outcome]:
    """Request the eviction of pods, one after the other, for as long as the budget lasts. Cancellation point.

    An error about one pod is not raised: it is the pod's outcome.
    """
    end_s = clock.monotonic() + EVICTION_BUDGET_S
    outcomes = []
    for pod in pods:
        error = NOT_REACHED if clock.monotonic() >= end_s else await _evict(api, pod, grace_s)
        if error is not None:
            outcomes.append(Outcome(pod.uid, clock.now(), error))
    return outcomes


async def _evict(api: Api, pod: PodToEvict, grace_s: int | None) -> str | None:
    """Request one eviction. Return the reason of a rejection; empty if accepted, None if the pod does not exist."""
    options = {"preconditions": {"uid": pod.uid}} | ({} if grace_s is None else {"gracePeriodSeconds": grace_s})
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    body = msgspec.json.encode(eviction)
    try:
        await api.act(POD.collection, pod.namespace, pod.name, body, subresource="eviction")
    except NotFound:
        return None
    except ApiError as error:
        return _rejection(error)
    return ""


def _rejection(error: ApiError) -> str:
    causes = error.details.get("causes") or []
    if isinstance(error, TooManyRequests):
        return " ".join([error.message, ",".join(str(cause.get("message", "")) for cause in causes)]).strip()
    if isinstance(error, Forbidden) and any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return TERMINATING_NAMESPACE
    return error.message
