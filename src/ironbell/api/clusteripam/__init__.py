"""Group `ipam.cluster.x-k8s.io`: addresses for machines."""

from typing import Any

from ironbell.api.clusteripam.ipaddress import IP_ADDRESS
from ironbell.api.clusteripam.ipaddressclaim import IP_ADDRESS_CLAIM
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (IP_ADDRESS, IP_ADDRESS_CLAIM)
"""All of them, in the order in which they are shown."""

__all__ = ["IP_ADDRESS", "IP_ADDRESS_CLAIM", "KINDS"]
