"""Provider: an entry in the inventory of installed providers, as clusterctl keeps it.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/api/v1alpha3/provider_type.go.
"""

from __future__ import annotations

from ironbell.api.cluster.names import CLUSTERCTL_LABELS
from ironbell.api.kind import Column, Kind
from ironbell.api.meta import Resource


class Provider(Resource, frozen=True):
    """A provider that is installed; its fields stand beside the metadata."""

    provider_name: str = ""
    type: str = ""
    version: str = ""
    watched_namespace: str = ""


PROVIDER: Kind[Provider] = Kind(
    group="clusterctl.cluster.x-k8s.io",
    version="v1alpha3",
    kind="Provider",
    plural="providers",
    model=Provider,
    categories=("cluster-api",),
    columns=(
        Column("Age", ".metadata.creationTimestamp", "date"),
        Column("Type", ".type"),
        Column("Provider", ".providerName"),
        Column("Version", ".version"),
    ),
    crd_labels=CLUSTERCTL_LABELS,
)
