"""The address pools as a system."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Lazy, System

_CONTROLLERS: Final = "ironbell.controllers.ipam.controllers"

SYSTEMS: Final = (
    System(
        "ipam",
        "InClusterIPPools: addresses for IPAddressClaims, and for Hardware without an address.",
        (Lazy("ironbell.api.inclusteripam", "KINDS"),),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        aliases=("ipam-in-cluster",),
        admission=Lazy("ironbell.controllers.ipam.admission", "ADMISSION"),
        admitted=frozenset({"inclusterippools.ipam.cluster.x-k8s.io", "globalinclusterippools.ipam.cluster.x-k8s.io"}),
        webhooks_of="cluster-api",
    ),
)
