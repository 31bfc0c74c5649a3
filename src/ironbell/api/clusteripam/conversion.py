"""All versions of IPAddress and IPAddressClaim.

Source: kubernetes-sigs/cluster-api: api/ipam/v1alpha1, api/ipam/v1beta1, core/webhooks/conversion/ipaddress*.go.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.conversion.paths import MISSING, Body, path, put, take, value_at
from ironbell.api.conversion.rules import Kept, Rule, Target, Written
from ironbell.api.conversion.status import Status

_LABEL_WAS_SET: Final = "conversion.cluster.x-k8s.io/cluster-name-label-set"
_CLUSTER_NAME: Final = ("spec", "clusterName")
_LABEL: Final = ("metadata", "labels", LABEL_CLUSTER_NAME)
_MARK: Final = ("metadata", "annotations", _LABEL_WAS_SET)


class _ClusterName:
    """The cluster's name, which the oldest version has as a label only."""

    def up(self, body: Body, kept: Body | None) -> None:
        name = value_at(body, _LABEL)
        if value_at(body, ("metadata", "labels")) is MISSING:
            return
        if name is not MISSING:
            put(body, _CLUSTER_NAME, name)
        if take(body, _MARK) == "false":
            take(body, _LABEL)

    def down(self, body: Body, target: Target) -> None:
        name = take(body, _CLUSTER_NAME)
        if name is MISSING or not name:
            return
        if value_at(body, _LABEL) is MISSING:
            put(body, _MARK, "false")
        put(body, _LABEL, name)


IP_ADDRESS: Final[tuple[Rule, ...]] = (Written(path("spec.prefix")),)

IP_ADDRESS_CLAIM: Final[tuple[Rule, ...]] = (Status(),)

IP_ADDRESS_CLAIM_V1ALPHA1: Final[tuple[Rule, ...]] = (_ClusterName(), Status(), Kept(path("status.conditions")))
