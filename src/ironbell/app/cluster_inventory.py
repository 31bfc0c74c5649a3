"""The inventory of Cluster API's providers: which of them are ours, for clusterctl.

`clusterctl move` compares the inventories of both sides before it begins, and `clusterctl upgrade plan` reads it.

Source: kubernetes-sigs/cluster-api: cmd/clusterctl/client/cluster/inventory.go, mover.go (checkTargetProviders).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from ironbell.api.client import Api, NotFound, PatchType, WriteOptions
from ironbell.api.cluster.names import LABEL_CLUSTERCTL, LABEL_CLUSTERCTL_CORE, LABEL_PROVIDER
from ironbell.api.clusterctl.provider import PROVIDER

VERSION: Final = "v1.14.2"
"""The release of Cluster API that its core, bootstrap and control plane providers are equal to."""
CAPT_VERSION: Final = "v0.7.0"
"""The release of Tinkerbell's provider that ours is equal to."""
EMBEDDED_NAMESPACE: Final = "kube-system"
"""Where the embedded API's inventory is: it has no namespace of a provider."""
_PROVIDERS: Final = {
    "cluster-api": ("cluster-api", "cluster-api", "CoreProvider", VERSION),
    "kubeadm-bootstrap": ("bootstrap-kubeadm", "kubeadm", "BootstrapProvider", VERSION),
    "kubeadm-control-plane": ("control-plane-kubeadm", "kubeadm", "ControlPlaneProvider", VERSION),
    "capt": ("infrastructure-tinkerbell", "tinkerbell", "InfrastructureProvider", CAPT_VERSION),
}
"""By component: name of the entry, of the provider, its type and its version."""
_OPTIONS: Final = WriteOptions(field_manager="ironbell", force=True)


def inventory(namespace: str, components: Collection[str]) -> Iterator[dict[str, Any]]:
    """The entries of those components that are providers."""
    for component, (name, provider, kind, version) in _PROVIDERS.items():
        if component in components:
            yield {
                "apiVersion": PROVIDER.api_version,
                "kind": PROVIDER.kind,
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": {LABEL_CLUSTERCTL: "", LABEL_CLUSTERCTL_CORE: "inventory", LABEL_PROVIDER: name},
                },
                "providerName": provider,
                "type": kind,
                "version": version,
            }


async def list_providers(api: Api, without: Collection[str]) -> None:
    """Make the embedded API's inventory say what runs; the components in `without` are somebody else's."""
    for document in inventory(EMBEDDED_NAMESPACE, [name for name in _PROVIDERS if name not in without]):
        body, name = msgspec.json.encode(document), document["metadata"]["name"]
        await api.patch(
            PROVIDER.collection, EMBEDDED_NAMESPACE, name, body, patch_type=PatchType.APPLY, options=_OPTIONS
        )
    for component, (name, *_rest) in _PROVIDERS.items():
        if component in without:
            with contextlib.suppress(NotFound):
                await api.delete(PROVIDER.collection, EMBEDDED_NAMESPACE, name)
