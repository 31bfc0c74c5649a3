"""IPAddressClaim: a request for an address out of a pool.

Source: kubernetes-sigs/cluster-api: api/ipam/v1beta2.
"""

from __future__ import annotations

from typing import Annotated

from ironbell.api.cluster.common import DNS_SUBDOMAIN, ContractVersionedObjectReference
from ironbell.api.cluster.deprecated import DeprecatedConditionsStatus
from ironbell.api.cluster.names import CORE_LABELS
from ironbell.api.crd.markers import Schema, Text63, required
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Condition, Model, Resource


class IpAddressClaimSpec(Model, frozen=True):
    """Pool that the address comes from, and the cluster that it is for."""

    cluster_name: Text63 = ""
    pool_ref: ContractVersionedObjectReference = required(ContractVersionedObjectReference)


class IpAddressReference(Model, frozen=True):
    """The address that was given."""

    name: Annotated[str, Schema(pattern=DNS_SUBDOMAIN, min_length=1, max_length=253)] = required(str)


class IpAddressClaimStatus(Model, frozen=True):
    """Address that was assigned."""

    schema_ = Schema(min_properties=1)

    conditions: Annotated[list[Condition], Schema(max_items=32, list_type="map", list_map_keys=("type",))] = []
    address_ref: IpAddressReference = IpAddressReference()
    deprecated: DeprecatedConditionsStatus | None = None


class IpAddressClaim(Resource, frozen=True):
    """A request for an address out of a pool."""

    spec: IpAddressClaimSpec = required(IpAddressClaimSpec)
    status: IpAddressClaimStatus = IpAddressClaimStatus()


IP_ADDRESS_CLAIM: Kind[IpAddressClaim] = Kind(
    group="ipam.cluster.x-k8s.io",
    version="v1beta2",
    kind="IPAddressClaim",
    plural="ipaddressclaims",
    model=IpAddressClaim,
    categories=("cluster-api",),
    columns=(
        Column("Pool Name", ".spec.poolRef.name"),
        Column("Pool Kind", ".spec.poolRef.kind"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    has_status=True,
    crd_labels=CORE_LABELS,
    older_versions="ironbell.api.clusteripam",
)
