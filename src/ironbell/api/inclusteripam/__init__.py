"""Pools of addresses, as Cluster API's in-cluster IPAM provider has them, in group `ipam.cluster.x-k8s.io`."""

from typing import Any

from ironbell.api.inclusteripam.pool import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL)
"""All of them, in the order in which they are shown."""

__all__ = ["GLOBAL_IN_CLUSTER_IP_POOL", "IN_CLUSTER_IP_POOL", "KINDS"]
