"""What answers the questions of `workload.queries`, for a controller's `resolvers`."""

from __future__ import annotations

from ironbell.kube.reconciler import Resolvers
from ironbell.workload.access import Workloads
from ironbell.workload.queries import AllNodes, Connection, NodeByName, NodeByProviderId


def resolvers(workloads: Workloads) -> Resolvers:
    """Askers by the type of their question; give the controller `workloads.feed` as well."""
    return {
        Connection: workloads.connection,
        NodeByProviderId: workloads.nodes_by_provider_id,
        NodeByName: workloads.node_by_name,
        AllNodes: workloads.all_nodes,
    }
