"""The controllers of address pools, ready to be added to a manager, and what each must be allowed to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.controllers.ipam import rivals
from ironbell.controllers.ipam.addresses import IpAddressReconciler
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.hardware import HardwareAddressReconciler
from ironbell.controllers.ipam.pools import PoolReconciler
from ironbell.kube.controller import Controller

_IPAM: Final = ["ipam.cluster.x-k8s.io"]
_POOLS: Final = ["inclusterippools", "globalinclusterippools"]
POOL_NAME: Final = "ipam-pool"
GLOBAL_POOL_NAME: Final = "ipam-global-pool"

WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    POOL_NAME: [
        {"apiGroups": _IPAM, "resources": ["inclusterippools", "inclusterippools/status"], "verbs": ["patch"]},
    ],
    GLOBAL_POOL_NAME: [
        {
            "apiGroups": _IPAM,
            "resources": ["globalinclusterippools", "globalinclusterippools/status"],
            "verbs": ["patch"],
        },
    ],
    HardwareAddressReconciler.name: [
        {"apiGroups": _IPAM, "resources": ["ipaddressclaims"], "verbs": ["create", "delete"]},
        {"apiGroups": ["tinkerbell.org"], "resources": ["hardware"], "verbs": ["patch"]},
        {"apiGroups": ["tinkerbell.org"], "resources": ["hardware/finalizers"], "verbs": ["update"]},
    ],
    IpAddressReconciler.name: [
        {"apiGroups": _IPAM, "resources": ["ipaddresses"], "verbs": ["patch", "delete"]},
    ],
    IpAddressClaimReconciler.name: [
        {"apiGroups": _IPAM, "resources": ["ipaddressclaims", "ipaddressclaims/status"], "verbs": ["patch"]},
        {"apiGroups": _IPAM, "resources": ["ipaddresses"], "verbs": ["create", "patch", "delete"]},
        {
            "apiGroups": _IPAM,
            "resources": ["ipaddressclaims/finalizers", *(f"{pools}/finalizers" for pools in _POOLS)],
            "verbs": ["update"],
        },
    ],
}
"""PolicyRules by the controller's name. `finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _IPAM, "resources": ["ipaddressclaims", "ipaddresses", *_POOLS], "verbs": _READ},
    {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters"], "verbs": _READ},
    {"apiGroups": ["tinkerbell.org"], "resources": ["hardware"], "verbs": _READ},
]
"""PolicyRules for what all of them watch."""


def controllers(reader: Api, api_of: Callable[[str], Api | None], *, sees_all: bool = True) -> list[Controller]:
    """The controllers.

    Args:
        reader: the API under an identity that may list IPAddresses.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        sees_all: whether objects of all namespaces are seen; without, pools for all of them are left alone.
    """
    return [
        Controller(PoolReconciler(IN_CLUSTER_IP_POOL, POOL_NAME), api=api_of(POOL_NAME)),
        Controller(PoolReconciler(GLOBAL_IN_CLUSTER_IP_POOL, GLOBAL_POOL_NAME), api=api_of(GLOBAL_POOL_NAME)),
        Controller(HardwareAddressReconciler(), workers=4, api=api_of(HardwareAddressReconciler.name)),
        Controller(IpAddressReconciler(), askers=rivals.askers(reader), api=api_of(IpAddressReconciler.name)),
        Controller(
            IpAddressClaimReconciler(sees_all=sees_all),
            askers=rivals.askers(reader),
            workers=4,
            api=api_of(IpAddressClaimReconciler.name),
        ),
    ]
