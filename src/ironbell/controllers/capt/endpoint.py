"""Where a cluster's API will be: of what the TinkerbellCluster and the Cluster say. Pure.

Source: tinkerbell/cluster-api-provider-tinkerbell: controller/cluster/tinkerbellcluster.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.common import ApiEndpoint

DEFAULT_PORT: Final = 6443


def endpoint(own: ApiEndpoint, cluster: ApiEndpoint) -> ApiEndpoint | None:
    """The provider's own if complete, else the Cluster's if complete, else what both together give, with 6443 for a
    port that nobody names; None if nobody names a host."""
    for one in (own, cluster):
        if one.host and one.port:
            return one
    host = cluster.host or own.host
    return ApiEndpoint(host=host, port=cluster.port or own.port or DEFAULT_PORT) if host else None
