"""The decision whether the Node of a Machine that is being deleted is drained and deleted.

It is neither while the whole cluster is being deleted, nor if no other node remains for its pods, nor without a Node.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (isDeleteNodeAllowed).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

from ironbell.api.cluster.machine import MachineNodeReference
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.controlplane import ControlPlane
from ironbell.contract.clusters.external import External, State
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy
from ironbell.controllers.capi.machine.node import state
from ironbell.controllers.capi.machine.observed import Deletion
from ironbell.controllers.capi.machine.queries import NodesNow
from ironbell.kube.decision import Need
from ironbell.kube.finalizers import is_deleting
from ironbell.workload.queries import PUSHED_S


class NodeWork(Enum):
    """The treatment of the Node."""

    DONE = "done"
    """It is drained, and finally deleted."""
    LEFT_OUT = "left out"
    NO_NODE = "no node"
    """The Machine has none."""
    NOT_KNOWN = "not known"
    """The decision needs facts that are not known yet."""


def node_work(draft: Draft, deletion: Deletion, host: External) -> NodeWork:
    """Decide the treatment of the Node; record its name if it has appeared only now."""
    if deletion.cluster is None or is_deleting(deletion.cluster):
        return NodeWork.LEFT_OUT
    if host.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        # A host that cannot be read now may exist: then its pods have to be drained.
        draft.wait("InfrastructureNotReadable", str(host))
        return NodeWork.NOT_KNOWN
    if not draft.status.node_ref.name and not _is_node_known(draft, deletion):
        return NodeWork.NOT_KNOWN
    if not draft.status.node_ref.name:
        return NodeWork.NO_NODE
    control_plane = deletion.control_plane
    if control_plane is not None:
        if control_plane.state is State.UNKNOWN:
            draft.wait("ControlPlaneNotReadable", str(control_plane))
            return NodeWork.NOT_KNOWN
        if control_plane.is_deleting:
            return NodeWork.LEFT_OUT
        if control_plane.exists and ControlPlane.of(control_plane).externally_managed:
            return NodeWork.DONE
    return NodeWork.DONE if deletion.control_plane_machines else NodeWork.LEFT_OUT


def node_left_by_host(draft: Draft, deletion: Deletion) -> NodeWork:
    """Decide the treatment of a Node that joined while its host was being deleted; nothing else would delete it."""
    deleted = draft.legacy(Legacy.INFRASTRUCTURE_READY)
    if not deletion.facts.provider_id or deleted is None or deleted.last_transition_time is None:
        return NodeWork.NO_NODE
    # the moment is stored in whole seconds
    after = parse_rfc3339(deleted.last_transition_time) + timedelta(seconds=1)
    if draft.now < after:
        draft.requeue_after(after - draft.now)
        return NodeWork.NOT_KNOWN
    if not _query_nodes(draft, deletion, after):
        return NodeWork.NOT_KNOWN
    return NodeWork.DONE if draft.status.node_ref.name else NodeWork.NO_NODE


def _is_node_known(draft: Draft, deletion: Deletion) -> bool:
    """Return whether it is known if the Machine has a Node.

    A Node may have joined meanwhile; and the cached facts may be from before the deletion, or from a cluster whose
    Nodes are not watched for a moment.
    """
    if not deletion.facts.provider_id:
        return True
    # The provider ID of a host that was never ready is lost with it, and a Node that joins until then is found by it.
    draft.spec = replace(draft.spec, provider_id=deletion.facts.provider_id)
    known, since = state(deletion.facts).node, draft.metadata.deletion_timestamp
    if known is not None:
        draft.status = replace(draft.status, node_ref=MachineNodeReference(name=known.name))
        return True
    return since is None or _query_nodes(draft, deletion, parse_rfc3339(since))


def nodes_now(draft: Draft, deletion: Deletion, since: datetime) -> tuple[str, ...] | None:
    """Names of the Machine's Nodes, queried from the cluster itself since this moment; None until the answer arrives.

    A failed query counts as no Nodes, so that it does not block the deletion.
    """
    draft.need(Need(NodesNow(deletion.facts.cluster, deletion.facts.provider_id), PUSHED_S, since))
    fact = deletion.nodes_now
    if fact is not None and fact.error is not None and fact.error_at is not None and fact.error_at >= since:
        return ()
    if fact is None or fact.at is None or fact.at < since:
        return None
    return fact.value or ()


def _query_nodes(draft: Draft, deletion: Deletion, since: datetime) -> bool:
    """Return whether it is known if the Machine has a Node; record its name."""
    names = nodes_now(draft, deletion, since)
    if names is None:
        draft.wait("NodeNotKnown", f"checking for a Node with spec.providerID {deletion.facts.provider_id}")
        return False
    if names:
        draft.status = replace(draft.status, node_ref=MachineNodeReference(name=names[0]))
    return True
