"""Group `clusterctl.cluster.x-k8s.io`: which providers are installed."""

from typing import Any

from ironbell.api.clusterctl.provider import PROVIDER
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (PROVIDER,)
"""All of them, in the order in which they are shown."""

__all__ = ["KINDS", "PROVIDER"]
