"""Names of this provider: finalizers, annotations, conditions.

Source: kubernetes-sigs/cluster-api-ipam-provider-in-cluster: pkg/ipamutil, internal/controllers, internal/webhooks.
"""

from __future__ import annotations

from typing import Final

RELEASE_ADDRESS: Final = "ipam.cluster.x-k8s.io/ReleaseAddress"
"""Finalizer of a claim: its address is to be taken back."""
PROTECT_ADDRESS: Final = "ipam.cluster.x-k8s.io/ProtectAddress"
"""Finalizer of an address: it goes with its claim alone."""
PROTECT_POOL: Final = "ipam.cluster.x-k8s.io/ProtectPool"
"""Finalizer of a pool: it stays while one of its addresses is given."""
SKIP_DELETION_CHECK: Final = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook"
"""Annotation on a pool: it may be deleted while addresses are given, as clusterctl does when it moves."""
LABEL_POOL_ADDRESS: Final = "ironbell.dev/pool-address"
"""Label on IPAddress: digest of its pool and address, so that two with the same are found."""
ADDRESS_CONFLICT: Final = "ironbell.dev/address-conflict"
"""Annotation on IPAddressClaim: uid of an IPAddress that is not told, since another claim has the same address."""
READY: Final = "Ready"

ADDRESS_POOL: Final = "ironbell.dev/address-pool"
"""Annotation on Hardware: the pool that its first interface is given an address from: [KIND[.GROUP]/]NAME."""
ADDRESS_FROM_POOL: Final = "ironbell.dev/address-from-pool"
"""Annotation on Hardware: the address that was given out of that pool."""
