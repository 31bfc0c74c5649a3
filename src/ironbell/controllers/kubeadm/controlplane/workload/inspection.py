"""Inspection of a workload cluster from the known facts, and the queries that it needs. Pure.

Nodes are watched. Pods and etcd are queried rarely while the cluster is healthy, and often during changes. Machines and
members are added or removed only on facts that are not older than `ACT_ON_S`.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane
(reconcileControlPlaneAndMachinesConditions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from ironbell.base.clock import rfc3339
from ironbell.controllers.kubeadm.controlplane.model import Inside, moment
from ironbell.controllers.kubeadm.controlplane.names import ConditionType
from ironbell.controllers.kubeadm.controlplane.observed import Facts, Observed, Queries
from ironbell.controllers.kubeadm.controlplane.workload.queries import CALM_S
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Fact, Need
from ironbell.workload.access import NotConnected
from ironbell.workload.etcd import EtcdUnreachableError
from ironbell.workload.queries import PUSHED_S, NodeView

BUSY_S: Final = 10.0
ACT_ON_S: Final = 20.0
"""Maximum age of facts for adding or removing Machines."""
INITIALIZED_S: Final = 5.0
_GRACE: Final = timedelta(minutes=5)
_ATTEMPTS: Final = 5


class InspectionState(Enum):
    """Progress of an inspection."""

    NOT_INITIALIZED = "not initialized"
    """The workload cluster does not exist yet."""
    CONNECTING = "connecting"
    """The first connection is being opened; reported conditions stay."""
    DOWN = "down"
    """The connection was lost a short while ago; reported conditions stay."""
    LOST = "lost"
    """The connection has been lost for so long that conditions become Unknown."""
    WAITING = "waiting"
    """Query results are pending; reported conditions stay."""
    COMPLETE = "complete"


@dataclass(frozen=True)
class Inspection:
    """The observed state of a workload cluster."""

    state: InspectionState
    message: str = ""
    inside: Inside = field(default_factory=Inside)
    fresh: bool = False
    """Whether it is fresh enough to act on."""
    again: datetime | None = None
    """Time of the next inspection if nothing changes before."""


def inspect(observed: Observed, now: datetime) -> Inspection:
    """Inspect the workload cluster."""
    kcp = observed.kcp
    initialized = find_condition(kcp.status.conditions, ConditionType.INITIALIZED)
    if not kcp.status.initialization.control_plane_initialized or initialized is None or initialized.status != "True":
        return Inspection(InspectionState.NOT_INITIALIZED, "Waiting for Cluster control plane to be initialized")
    facts = observed.facts
    state = facts.connection.value if facts.connection is not None else None
    if state is None or (
        not state.connected and state.last_probe_success is None and state.consecutive_failures < _ATTEMPTS
    ):
        return Inspection(InspectionState.CONNECTING, "Remote connection not established yet")
    if not state.healthy:
        last = state.last_probe_success
        since = max(filter(None, (last, moment(initialized.last_transition_time))), default=now)
        message = f"Last successful probe at {rfc3339(last)}" if last is not None else ""
        if now - since > _GRACE:
            return Inspection(InspectionState.LOST, message)
        if not state.connected:
            return Inspection(InspectionState.DOWN, message, again=since + _GRACE)
    return _inside(observed, facts, now)


def _inside(observed: Observed, facts: Facts, now: datetime) -> Inspection:
    managed = observed.queries is not None and observed.queries.components.etcd
    node_facts: list[Fact[Any] | None] = [*facts.nodes.values(), *facts.unnamed.values()]
    pending = [fact for fact in node_facts if _is_pending(fact)]
    if facts.nodes and (_is_pending(facts.components) or (managed and _is_pending(facts.etcd))):
        pending.append(None)
    if pending:
        return Inspection(InspectionState.WAITING, "Waiting for the results of queries about the workload cluster")
    nodes: dict[str, NodeView] = {}
    nodes_error = ""
    for name, fact in facts.nodes.items():
        if fact is not None and fact.error is not None:
            nodes_error = fact.error.message
        if fact is not None and fact.value is not None:
            nodes[name] = fact.value
    for candidates in facts.unnamed.values():
        # if two Nodes match, it is unknown which one is the Machine's
        if candidates is not None and candidates.value is not None and len(candidates.value) == 1:
            nodes[candidates.value[0].name] = candidates.value[0]
    components, etcd = facts.components, facts.etcd
    return Inspection(
        InspectionState.COMPLETE,
        inside=Inside(
            nodes,
            nodes_error,
            _good(components),
            components.error.message if components is not None and components.error is not None else "",
            _good(etcd) if managed else None,
            _etcd_error(etcd) if managed else "",
            {name: fact.value for name, fact in facts.strangers.items() if fact is not None and _is_answered(fact)},
        ),
        fresh=_fresh(components, now) and (not managed or _fresh(etcd, now)),
    )


def _is_pending(fact: Fact[Any] | None) -> bool:
    """Return whether a query has no result yet. A missing connection is reported by the fact about the connection."""
    if fact is None or isinstance(fact.error, NotConnected):
        return True
    return fact.at is None and fact.error is None


def _is_answered(fact: Fact[Any]) -> bool:
    return fact.at is not None and fact.error is None


def _good(fact: Fact[Any] | None) -> Any:
    """Return the value of a fact, unless its last query failed."""
    return None if fact is None or fact.error is not None else fact.value


def _fresh(fact: Fact[Any] | None, now: datetime) -> bool:
    return fact is not None and fact.error is None and fact.fresh(now, ACT_ON_S)


def _etcd_error(fact: Fact[Any] | None) -> str:
    if fact is None or fact.error is None:
        return ""
    if isinstance(fact.error, EtcdUnreachableError):
        return f"Failed to connect to etcd: {fact.error.message}"
    return f"Failed to get etcd members: {fact.error.message}"


def needs(queries: Queries, facts: Facts, *, initialized: bool, busy: bool) -> list[Need[Any]]:
    """Return the needed queries. Without a connection only the connection is needed.

    Args:
        queries: all queries.
        facts: the known facts.
        initialized: whether the control plane is initialized; before, only this is queried.
        busy: whether something changes or is unhealthy.
    """
    needed: list[Need[Any]] = [Need(queries.connection, PUSHED_S)]
    state = facts.connection.value if facts.connection is not None else None
    if state is None or not state.connected:
        return needed
    if not initialized:
        return [*needed, Need(queries.kubeadm_config, INITIALIZED_S)]
    nodes: Mapping[str, Any] = queries.nodes
    needed += [Need(query, PUSHED_S) for query in (*nodes.values(), *queries.unnamed.values())]
    needed += [Need(query, PUSHED_S) for query in queries.strangers.values()]
    if not nodes:
        return needed
    age_s = BUSY_S if busy else CALM_S
    needed.append(Need(queries.components, age_s))
    if queries.components.etcd:
        needed.append(Need(queries.etcd, age_s, timeout_s=60.0))
    return needed
