"""Both versions of ClusterResourceSet and its bindings.

Source: kubernetes-sigs/cluster-api: api/addons/v1beta1/conversion.go, core/webhooks/conversion.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.conversion.rules import Rule, Written, for_each
from ironbell.api.conversion.status import Status

CLUSTER_RESOURCE_SET: Final[tuple[Rule, ...]] = (Status(),)

CLUSTER_RESOURCE_SET_BINDING: Final[tuple[Rule, ...]] = (
    for_each("spec.bindings", for_each("resources", Written(("applied",), zero=False))),
)
