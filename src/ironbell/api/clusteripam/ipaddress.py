"""IPAddress: an address that a pool has given out.

Source: kubernetes-sigs/cluster-api: api/ipam/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.common import DNS_SUBDOMAIN, ContractVersionedObjectReference
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Int32, Schema, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Model, Resource


class IpAddressClaimReference(Model, frozen=True):
    """The claim that the address is for."""

    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)


class IpAddressSpec(Model, frozen=True):
    """An address, its claim, and the pool that it comes from."""

    schema_ = Schema(required=("prefix",))

    claim_ref: IpAddressClaimReference = required(IpAddressClaimReference)
    pool_ref: ContractVersionedObjectReference = required(ContractVersionedObjectReference)
    address: Annotated[str, Schema(min_length=1, max_length=39)] = required(str)
    prefix: Annotated[Int32 | None, Schema(minimum=0, maximum=128)] = None
    gateway: Annotated[str, Schema(min_length=1, max_length=39)] = ""


class IpAddress(Resource, frozen=True):
    """An address that a pool has given out."""

    spec: IpAddressSpec = required(IpAddressSpec)


IP_ADDRESS: Kind[IpAddress] = Kind(
    group="ipam.cluster.x-k8s.io",
    version="v1beta2",
    kind="IPAddress",
    plural="ipaddresses",
    model=IpAddress,
    categories=("cluster-api",),
    columns=(
        Column("Address", ".spec.address"),
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.clusteripam",
)
