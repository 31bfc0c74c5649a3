"""The inventory of Cluster API's providers: the ones that Ironbell provides, for clusterctl.

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
from ironbell.app.systems import SYSTEMS, systems_without

EMBEDDED_NAMESPACE: Final = "kube-system"
"""Namespace of the embedded API's inventory, which has no namespace of a provider."""
_OPTIONS: Final = WriteOptions(field_manager="ironbell", force=True)


def inventory(namespace: str, components: Collection[str]) -> Iterator[dict[str, Any]]:
    """The inventory entries of the components that are providers."""
    for system in SYSTEMS:
        provider = system.provider
        if provider is not None and system.name in components:
            yield {
                "apiVersion": PROVIDER.api_version,
                "kind": PROVIDER.kind,
                "metadata": {
                    "name": provider.entry,
                    "namespace": namespace,
                    "labels": {
                        LABEL_CLUSTERCTL: "",
                        LABEL_CLUSTERCTL_CORE: "inventory",
                        LABEL_PROVIDER: provider.entry,
                    },
                },
                "providerName": provider.name,
                "type": provider.type,
                "version": provider.version,
            }


async def list_providers(api: Api, without: Collection[str]) -> None:
    """Update the embedded API's inventory to what runs; other managers provide the components in `without`."""
    for document in inventory(EMBEDDED_NAMESPACE, [system.name for system in systems_without(without)]):
        body, name = msgspec.json.encode(document), document["metadata"]["name"]
        await api.patch(
            PROVIDER.collection, EMBEDDED_NAMESPACE, name, body, patch_type=PatchType.APPLY, options=_OPTIONS
        )
    for system in SYSTEMS:
        if system.provider is not None and system.name in without:
            with contextlib.suppress(NotFound):
                await api.delete(PROVIDER.collection, EMBEDDED_NAMESPACE, system.provider.entry)
