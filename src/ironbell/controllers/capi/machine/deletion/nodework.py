"""Whether the Node of a Machine that goes is drained and deleted at all.

Not while the whole cluster goes, nor when nothing is left that could move pods elsewhere, nor when there is no Node.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (isDeleteNodeAllowed).
"""

from __future__ import annotations

from enum import Enum

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import MachineNodeReference
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.controlplane import ControlPlane
from ironbell.contract.external import State
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.node import PUSHED_S, Found, cluster_of, state
from ironbell.controllers.capi.machine.observed import Observed
from ironbell.kube.decision import Need
from ironbell.kube.finalizers import is_deleting
from ironbell.workload.questions import NodeByProviderId


class NodeWork(Enum):
    """What becomes of the Node."""

    DONE = "done"
    """It is drained, and deleted in the end."""
    LEFT_OUT = "left out"
    NOT_KNOWN = "not known"
    """What decides this is still to come."""


def node_work(draft: Draft, observed: Observed, cluster: Cluster | None) -> NodeWork:
    """Whether to do it; takes over the Node's name if only now there is one."""
    if cluster is None or is_deleting(cluster):
        return NodeWork.LEFT_OUT
    if observed.infrastructure.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        # A host that cannot be seen now may be there: its pods have a right to leave it.
        draft.wait("InfrastructureNotReadable", str(observed.infrastructure))
        return NodeWork.NOT_KNOWN
    if not draft.status.node_ref.name and not _look_once_more(draft, observed):
        return NodeWork.NOT_KNOWN
    if not draft.status.node_ref.name:
        return NodeWork.LEFT_OUT
    control_plane = observed.deletion.control_plane
    if control_plane is not None:
        if control_plane.state is State.UNKNOWN:
            draft.wait("ControlPlaneNotReadable", str(control_plane))
            return NodeWork.NOT_KNOWN
        if control_plane.is_deleting:
            return NodeWork.LEFT_OUT
        if control_plane.is_found and ControlPlane.of(control_plane).externally_managed:
            return NodeWork.DONE
    return NodeWork.DONE if observed.deletion.control_plane_machines else NodeWork.LEFT_OUT


def _look_once_more(draft: Draft, observed: Observed) -> bool:
    """Whether it is known if there is a Node: one may have come since, and what was told before the deletion may be
    from a cluster that has been away. What cannot be asked does not hold us."""
    if not observed.provider_id:
        return True
    since = draft.metadata.deletion_timestamp
    asked = parse_rfc3339(since) if since else None
    draft.need(Need(NodeByProviderId(cluster_of(observed), observed.provider_id), PUSHED_S, asked))
    known, fact = state(observed), observed.nodes
    if known.node is not None:
        draft.status = replace(draft.status, node_ref=MachineNodeReference(name=known.node.name))
        return True
    is_old = asked is not None and fact is not None and fact.at is not None and fact.at < asked
    if known.found is Found.UNKNOWN or (known.found is Found.MISSING and is_old):
        draft.wait("NodeNotKnown", f"whether there is a Node with spec.providerID {observed.provider_id} is asked")
        return False
    return True
