"""The Node of a server that was just installed, as proof that its system is up. Pure.

Many templates have no report: upstream's default, and most of what users wrote. There the Node is the proof: one with
the server's provider ID, or with its name and address, whose kubelet reports. Nodes are watched, so the Machine becomes
ready as soon as its Node is there.

A Node of an earlier installation of the same server must not count. While its cluster has not noticed that its kubelet
is silent (less than a minute), only the times in it tell the two apart; clocks of servers may be wrong, therefore these
are compared only until the cluster must have noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowState
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.capt.node_identity import is_on, names_of, reports
from ironbell.kube.decision import Fact, Need, Question
from ironbell.kube.reconciler import Cache
from ironbell.provisioner.lifecycle.names import provider_id
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.questions import PUSHED_S, NodeByName, NodeByProviderId, NodeView

NodeQuestion: TypeAlias = NodeByProviderId | NodeByName
NodeFact: TypeAlias = Fact[tuple[NodeView, ...]] | Fact[NodeView | None] | None

CLOCKS_DIFFER: Final = timedelta(seconds=30)
"""By how much the clocks of management and cluster may differ without delaying anything."""
NOTICED: Final = timedelta(minutes=5)
"""After how long a cluster has certainly noticed that a kubelet is silent."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known of the Node of a server that was just installed."""

    node: NodeView | None = None
    """The Node that proves that the system is up."""
    is_absent: bool = False
    """Whether the cluster has answered, and has no such Node."""
    problem: str = ""
    """Why the cluster cannot be queried."""
    needs: tuple[Need[Any], ...] = ()


def questions(
    obj: TinkerbellMachine,
    cluster: Cluster | None,
    machine: Machine | None,
    hardware: Hardware | None,
    workflow: Workflow | None,
) -> list[NodeQuestion]:
    """What to ask the cluster while the installed system boots."""
    if cluster is None or machine is None or hardware is None or workflow is None or obj.status.ready:
        return []
    if workflow.status.state != WorkflowState.SUCCESS:
        return []
    at = ClusterKey.of(cluster)
    names = [NodeByName(at, name) for name in names_of(machine, hardware)]
    return [NodeByProviderId(at, provider_id(hardware)), *names]


def known(cache: Cache, question: NodeQuestion) -> NodeFact:
    """The last answer to one of these questions."""
    asked: Question[Any] = question
    return cache.fact(asked, PUSHED_S)


def look(
    hardware: Hardware, facts: Sequence[tuple[NodeQuestion, NodeFact]], ended: datetime | None, now: datetime
) -> Sight:
    """What the answers say that were given since the installation ended."""
    needs = tuple(Need(question, PUSHED_S, newer_than=ended) for question, _ in facts)
    current = [fact for _, fact in facts if fact is not None and fact.error is None]
    current = [fact for fact in current if fact.fresh(now, PUSHED_S, newer_than=ended)]
    found = [node for fact in current for node in _nodes(fact) if _proves(node, hardware, ended, now)]
    errors = [fact.error.message for _, fact in facts if fact is not None and fact.error is not None]
    return Sight(
        node=next(iter(found), None),
        is_absent=bool(facts) and len(current) == len(facts) and not found,
        problem=next(iter(errors), ""),
        needs=needs,
    )


def _nodes(fact: Fact[Any]) -> Sequence[NodeView]:
    value = fact.value
    return value if isinstance(value, tuple) else [value] if value is not None else []


def _proves(node: NodeView, hardware: Hardware, ended: datetime | None, now: datetime) -> bool:
    is_its = node.provider_id == provider_id(hardware) or (not node.provider_id and is_on(node, hardware))
    return is_its and reports(node) and _is_of_this_installation(node, ended, now)


def _is_of_this_installation(node: NodeView, ended: datetime | None, now: datetime) -> bool:
    if ended is None or now - ended >= NOTICED:
        return True
    ready = node.condition("Ready")
    heard = [ready.last_heartbeat_time, ready.last_transition_time] if ready is not None else []
    moments = [parse_rfc3339(moment) for moment in (node.creation_timestamp, *heard) if moment]
    return any(moment >= ended - CLOCKS_DIFFER for moment in moments)
