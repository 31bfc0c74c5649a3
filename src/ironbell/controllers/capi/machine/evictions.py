"""What is done to a workload cluster when a Machine goes: its node is cordoned, pods are evicted, the node is deleted.

All of it may be done twice without harm.

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
    """A pod to evict: exactly this one, not a later one of its name."""

    namespace: str
    name: str
    uid: str


class Ledger:
    """What became of the latest evictions, by node. A hint for when to try again; losing it costs a request or two."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[tuple[ClusterKey, str], dict[str, Outcome]] = OrderedDict()

    def outcomes(self, cluster: ClusterKey, node: str) -> tuple[Outcome, ...]:
        """The outcomes on a node."""
        return tuple(self._nodes.get((cluster, node), {}).values())

    def note(self, cluster: ClusterKey, node: str, outcomes: Iterable[Outcome]) -> None:
        """Remember outcomes, each in place of what was known of its pod."""
        known = self._nodes.setdefault((cluster, node), {})
        self._nodes.move_to_end((cluster, node))
        for outcome in outcomes:
            known[outcome.uid] = outcome
        latest = max((outcome.at for outcome in known.values()), default=None)
        for uid in [uid for uid, one in known.items() if latest is not None and latest - one.at > _FORGET_AFTER]:
            del known[uid]
        while len(self._nodes) > NODES_REMEMBERED:
            self._nodes.popitem(last=False)

    def forget(self, cluster: ClusterKey, node: str) -> None:
        """The node is gone."""
        self._nodes.pop((cluster, node), None)


async def evict(api: Api, pods: Iterable[PodToEvict], clock: Clock, *, grace_s: int | None = None) -> list[Outcome]:
    """Ask for the eviction of pods, one after the other, for as long as the budget lasts. Cancellation point.

    Never raises for what one pod meets: that is its outcome.
    """
    end_s = clock.monotonic() + EVICTION_BUDGET_S
    outcomes = []
    for pod in pods:
        error = NOT_REACHED if clock.monotonic() >= end_s else await _evict(api, pod, grace_s)
        if error is not None:
            outcomes.append(Outcome(pod.uid, clock.now(), error))
    return outcomes


async def _evict(api: Api, pod: PodToEvict, grace_s: int | None) -> str | None:
    """Why it was refused; empty if it was not, None if the pod is gone."""
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
        return _refusal(error)
    return ""


def _refusal(error: ApiError) -> str:
    causes = error.details.get("causes") or []
    if isinstance(error, TooManyRequests):
        return " ".join([error.message, ",".join(str(cause.get("message", "")) for cause in causes)]).strip()
    if isinstance(error, Forbidden) and any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return TERMINATING_NAMESPACE
    return error.message
