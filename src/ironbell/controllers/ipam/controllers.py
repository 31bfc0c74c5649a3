"""The controllers of address pools, and the permissions that each needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.client import Api
from ironbell.api.cluster import CLUSTER
from ironbell.api.clusteripam import IP_ADDRESS, IP_ADDRESS_CLAIM
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE
from ironbell.contract.access import Permissions, may, may_read, policy_rules
from ironbell.contract.system import Runtime
from ironbell.controllers.ipam import rivals
from ironbell.controllers.ipam.addresses import IpAddressReconciler
from ironbell.controllers.ipam.claims import IpAddressClaimReconciler
from ironbell.controllers.ipam.hardware import HardwareAddressReconciler
from ironbell.controllers.ipam.pools import PoolReconciler
from ironbell.kube.manager.controller import Controller

POOL_NAME: Final = "ipam-pool"
GLOBAL_POOL_NAME: Final = "ipam-global-pool"
_POOLS: Final = (IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL)
PERMISSIONS: Final = Permissions(
    reads=policy_rules(may_read(IP_ADDRESS_CLAIM, IP_ADDRESS, *_POOLS, CLUSTER, HARDWARE)),
    # `finalizers` is for owner references that block deletion
    writes={
        POOL_NAME: policy_rules([may(IN_CLUSTER_IP_POOL, "patch", status=True)]),
        GLOBAL_POOL_NAME: policy_rules([may(GLOBAL_IN_CLUSTER_IP_POOL, "patch", status=True)]),
        HardwareAddressReconciler.name: policy_rules(
            [
                may(IP_ADDRESS_CLAIM, "create", "delete"),
                may(HARDWARE, "patch"),
                may(HARDWARE, "update", subresource="finalizers"),
            ]
        ),
        IpAddressReconciler.name: policy_rules([may(IP_ADDRESS, "patch", "delete")]),
        IpAddressClaimReconciler.name: policy_rules(
            [
                may(IP_ADDRESS_CLAIM, "patch", status=True),
                may(IP_ADDRESS, "create", "patch", "delete"),
                *(may(kind, "update", subresource="finalizers") for kind in (IP_ADDRESS_CLAIM, *_POOLS)),
            ]
        ),
    },
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    # Only a process that watches all namespaces knows all addresses of a global pool.
    return controllers(runtime.api, runtime.api_of, sees_all=not runtime.namespace)


def controllers(reader: Api, api_of: Callable[[str], Api | None], *, sees_all: bool = True) -> list[Controller]:
    """Create the controllers.

    Args:
        reader: the API under an identity that may list IPAddresses.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
        sees_all: whether objects of all namespaces are watched; otherwise global pools are ignored.
    """
    return [
        Controller(PoolReconciler(IN_CLUSTER_IP_POOL, POOL_NAME), api=api_of(POOL_NAME)),
        Controller(PoolReconciler(GLOBAL_IN_CLUSTER_IP_POOL, GLOBAL_POOL_NAME), api=api_of(GLOBAL_POOL_NAME)),
        Controller(HardwareAddressReconciler(), workers=4, api=api_of(HardwareAddressReconciler.name)),
        Controller(IpAddressReconciler(), resolvers=rivals.resolvers(reader), api=api_of(IpAddressReconciler.name)),
        Controller(
            IpAddressClaimReconciler(sees_all=sees_all),
            resolvers=rivals.resolvers(reader),
            workers=4,
            api=api_of(IpAddressClaimReconciler.name),
        ),
    ]
