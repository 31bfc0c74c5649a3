"""Group `runtime.cluster.x-k8s.io`: extensions that are called at run time."""

from typing import Any

from ironbell.api.clusterruntime.extensionconfig import EXTENSION_CONFIG
from ironbell.api.kind import Kind

KINDS: tuple[Kind[Any], ...] = (EXTENSION_CONFIG,)
"""All of them, in the order in which they are shown."""

__all__ = ["EXTENSION_CONFIG", "KINDS"]
