"""The conditions NodeReady and NodeHealthy: the state of the Machine's Node, or the reason why it is unknown.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go
(setNodeHealthyAndReadyConditions).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.clusters.bootstrap import reported_failure
from ironbell.contract.clusters.external import External
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.names import MachineCondition, Reason
from ironbell.controllers.capi.machine.node import Lookup, NodeState, health, readiness
from ironbell.controllers.capi.machine.observed import NodeFacts
from ironbell.kube.conditions import find_condition
from ironbell.workload.queries import ConnectionState, NodeView

GRACE: Final = timedelta(minutes=5)
"""Time for which the last known state of a Node is reported while its cluster does not answer."""
ATTEMPTS: Final = 5
"""Number of probes of a cluster that never answered, before that is reported."""
_BOTH: Final = (MachineCondition.NODE_READY, MachineCondition.NODE_HEALTHY)


def set_node_conditions(draft: Draft, known: NodeState, facts: NodeFacts, host: External, cluster: Cluster) -> None:
    """Set both conditions."""
    if not cluster.status.initialization.infrastructure_provisioned:
        _unknown(draft, "Waiting for Cluster status.initialization.infrastructureProvisioned to be true")
        return
    initialized = find_condition(cluster.status.conditions, "ControlPlaneInitialized")
    if initialized is None or initialized.status != "True":
        _unknown(draft, "Waiting for Cluster control plane to be initialized")
        return
    if known.lookup is Lookup.NOT_QUERIED:
        _not_queried(draft)
        return
    if _is_down(draft, facts.connection.value if facts.connection else None, initialized.last_transition_time):
        return
    if known.node is not None:
        ready, sound = readiness(known.node), health(known.node)
        draft.set(MachineCondition.NODE_READY, ready.status, ready.reason, ready.message, ready.since)
        draft.set(MachineCondition.NODE_HEALTHY, sound.status, sound.reason, sound.message)
    elif known.lookup is Lookup.FAILED:
        _both(draft, "Unknown", Reason.INTERNAL_ERROR, known.problem)
    elif known.lookup is Lookup.MISSING:
        _missing(draft, _clues(facts, host))
    elif not _is_reported(draft):
        _both(draft, "Unknown", Reason.CONNECTION_DOWN, known.problem or "Remote connection not established yet")


def _is_down(draft: Draft, connection: ConnectionState | None, initialized_at: str | None) -> bool:
    """Return whether the state is unknown because the cluster does not answer; report it if that lasts."""
    if connection is None or connection.healthy:
        return False
    last = connection.last_probe_success
    if last is None and connection.consecutive_failures < ATTEMPTS:
        if not _is_reported(draft):
            _both(draft, "Unknown", Reason.CONNECTION_DOWN, "Remote connection not established yet")
        return True
    moments = [moment for moment in (last, _moment(initialized_at)) if moment is not None]
    silent = draft.now - max(moments) if moments else GRACE * 2
    if silent <= GRACE:
        draft.requeue_after(GRACE - silent + timedelta(seconds=1))
        return False
    message = f"Last successful probe at {rfc3339(last)}" if last is not None else connection.error
    _both(draft, "Unknown", Reason.CONNECTION_DOWN, message)
    return True


def _moment(text: str | None) -> datetime | None:
    return parse_rfc3339(text) if text else None


def _not_queried(draft: Draft) -> None:
    if draft.is_deleting and not draft.status.node_ref.name:
        _both(draft, "Unknown", Reason.NODE_DOES_NOT_EXIST, "Node does not exist")
    else:
        _unknown(draft, f"Waiting for {draft.spec.infrastructure_ref.kind} to report spec.providerID")


def _missing(draft: Draft, clues: Sequence[str]) -> None:
    name = draft.status.node_ref.name
    if name:
        suffix = "" if draft.is_deleting else " while the Machine still exists"
        _both(draft, "False", Reason.NODE_DELETED, f"Node {name} has been deleted{suffix}")
    elif draft.is_deleting:
        _both(draft, "Unknown", Reason.NODE_DOES_NOT_EXIST, "Node does not exist")
    else:
        waits = f"Waiting for a Node with spec.providerID {draft.spec.provider_id} to exist"
        _unknown(draft, "; ".join([waits, *clues]))


def _clues(facts: NodeFacts, host: External) -> Sequence[str]:
    """Hints why the Node may never appear: another object's Node has its name, or the host's bootstrap has failed."""
    clues = [f"Node {node.name} exists, but {_difference(node)}" for node in facts.namesakes]
    failure = reported_failure(host.obj) if host.obj is not None else ""
    return [*clues, f"the bootstrap of the host has failed: {failure}"] if failure else clues


def _difference(node: NodeView) -> str:
    return f"has spec.providerID {node.provider_id}" if node.provider_id else "has no spec.providerID"


def _is_reported(draft: Draft) -> bool:
    return all(draft.condition(kind) is not None for kind in _BOTH)


def _unknown(draft: Draft, message: str) -> None:
    _both(draft, "Unknown", Reason.INSPECTION_FAILED, message)


def _both(draft: Draft, status: str, reason: str, message: str) -> None:
    for kind in _BOTH:
        draft.set(kind, status, reason, message)
