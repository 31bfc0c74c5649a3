"""InClusterIPPool and GlobalInClusterIPPool: addresses that claims are given from, of one namespace or of all.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: api/v1alpha2.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import field

from ironbell.api.crd.markers import Int32, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource

GROUP: Final = "ipam.cluster.x-k8s.io"
_VERSION: Final = "v1alpha2"


class IpPoolSpec(Model, frozen=True):
    """Addresses of the pool, and the network that they belong to."""

    addresses: Annotated[
        list[str], Schema("Addresses to give: single ones, ranges such as 192.0.2.10-192.0.2.20, and networks.")
    ] = required(list)
    prefix: Annotated[int, Schema("Length of the network's prefix.", minimum=0, maximum=128)] = required(int)
    gateway: Annotated[str, Schema("Gateway of the network; it is never given.")] = ""
    allocate_reserved_ip_addresses: Annotated[
        bool, Schema("Give the network's first address as well, and the last one of an IPv4 network.")
    ] = field(default=False, name="allocateReservedIPAddresses")
    excluded_addresses: Annotated[list[str], Schema("Addresses that are not given, written like addresses.")] = []
    address_reuse_grace_period_seconds: Annotated[
        Int32 | None, Schema("How long a released address is kept from others.", minimum=0)
    ] = None


class IpPoolAddresses(Model, frozen=True):
    """Numbers of addresses."""

    total: Annotated[int, Schema("Addresses of the pool.")] = required(int)
    free: Annotated[int, Schema("Number of addresses that are available.")] = required(int)
    used: Annotated[int, Schema("Number of addresses that are assigned.")] = required(int)
    out_of_range: Annotated[int, Schema("Number of assigned addresses that the pool no longer contains.")] = required(
        int
    )


class IpPoolStatus(Model, frozen=True):
    """Observed state of the pool."""

    ip_addresses: Annotated[IpPoolAddresses | None, Schema("How many there are.")] = field(
        default=None, name="ipAddresses"
    )


class IpPool(Resource, frozen=True):
    """Addresses that claims of its namespace are given from."""

    spec: IpPoolSpec = IpPoolSpec()
    status: IpPoolStatus = IpPoolStatus()


class GlobalIpPool(IpPool, frozen=True):
    """Addresses that claims of every namespace are given from."""


_COLUMNS: Final = (
    Column("Addresses", ".spec.addresses", description="Addresses to give"),
    Column("Total", ".status.ipAddresses.total", "integer", description="Addresses of the pool"),
    Column("Free", ".status.ipAddresses.free", "integer", description="Addresses that nobody has"),
    Column("Used", ".status.ipAddresses.used", "integer", description="Addresses that were given"),
)
_LABELS: Final = (
    ("cluster.x-k8s.io/provider", "ipam-in-cluster"),
    ("cluster.x-k8s.io/v1beta1", _VERSION),
    ("cluster.x-k8s.io/v1beta2", _VERSION),
    ("clusterctl.cluster.x-k8s.io", ""),
)

IN_CLUSTER_IP_POOL: Kind[IpPool] = Kind(
    group=GROUP,
    version=_VERSION,
    kind="InClusterIPPool",
    plural="inclusterippools",
    model=IpPool,
    categories=("cluster-api",),
    columns=_COLUMNS,
    has_status=True,
    crd_labels=_LABELS,
)
GLOBAL_IN_CLUSTER_IP_POOL: Kind[GlobalIpPool] = Kind(
    group=GROUP,
    version=_VERSION,
    kind="GlobalInClusterIPPool",
    plural="globalinclusterippools",
    model=GlobalIpPool,
    namespaced=False,
    categories=("cluster-api",),
    columns=_COLUMNS,
    has_status=True,
    crd_labels=_LABELS,
)
