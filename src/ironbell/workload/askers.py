"""What answers the questions of `workload.questions`, for a controller's `askers`."""

from __future__ import annotations

from ironbell.kube.reconciler import Askers
from ironbell.workload.access import Workloads
from ironbell.workload.questions import AllNodes, Connection, NodeByName, NodeByProviderId


def askers(workloads: Workloads) -> Askers:
    """Askers by the type of their question; give the controller `workloads.feed` as well."""
    return {
        Connection: workloads.connection,
        NodeByProviderId: workloads.nodes_by_provider_id,
        NodeByName: workloads.node_by_name,
        AllNodes: workloads.all_nodes,
    }
