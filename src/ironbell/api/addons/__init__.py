"""Group `addons.cluster.x-k8s.io`: objects that are put into clusters."""

from typing import Any

from ironbell.api.addons.clusterresourceset import CLUSTER_RESOURCE_SET
from ironbell.api.addons.clusterresourcesetbinding import CLUSTER_RESOURCE_SET_BINDING
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (CLUSTER_RESOURCE_SET, CLUSTER_RESOURCE_SET_BINDING)
"""All of them, in the order in which they are shown."""

__all__ = ["CLUSTER_RESOURCE_SET", "CLUSTER_RESOURCE_SET_BINDING", "KINDS"]
