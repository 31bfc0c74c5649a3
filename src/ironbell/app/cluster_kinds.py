"""Cluster API's kinds in the embedded API: defined when it answers already, and converted in its own process.

Their definitions take longer than all others together, and the servers toward machines need none of them. The kinds of
a component that is left out are left alone: who takes its place brings definitions and webhooks of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ironbell.api.client import BadRequest
from ironbell.api.conversion.names import CONVERTED
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.identity import SYSTEM
from ironbell.apiserver.resources import Convert
from ironbell.app.cluster_admission import ClusterAdmission
from ironbell.app.cluster_lookups import Lookups
from ironbell.base.loading import load

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_CAPT = frozenset(
    f"{plural}.infrastructure.cluster.x-k8s.io"
    for plural in (
        "tinkerbellclusters",
        "tinkerbellclustertemplates",
        "tinkerbellmachines",
        "tinkerbellmachinetemplates",
    )
)
"""Definitions of CAPT's kinds that are completed and checked; its group is that of other providers as well."""
_IPAM = frozenset(f"{plural}.ipam.cluster.x-k8s.io" for plural in ("inclusterippools", "globalinclusterippools"))
"""Definitions of pools; their group has kinds of Cluster API itself."""
_GROUPS: Mapping[str, frozenset[str]] = {
    "cluster-api": frozenset(
        {"cluster.x-k8s.io", "addons.cluster.x-k8s.io", "ipam.cluster.x-k8s.io", "runtime.cluster.x-k8s.io"}
    ),
    "kubeadm-bootstrap": frozenset({"bootstrap.cluster.x-k8s.io"}),
    "kubeadm-control-plane": frozenset({"controlplane.cluster.x-k8s.io"}),
}
"""API groups by the component whose kinds are in them. Who left out which matters at the start, before components are
imported: hence the names."""


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    labels: dict[str, str] = {}


class _Definition(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class ClusterKinds:
    """What converts, completes and checks objects of these kinds; `join` comes right after the server's start."""

    def __init__(self, without: Collection[str] = ()) -> None:
        """`without` names components whose kinds are somebody else's."""
        self._without = frozenset(without)
        self._others: frozenset[str] = frozenset().union(*(_GROUPS.get(name, ()) for name in without))
        self._server: ApiServer | None = None
        self._versions: dict[str, tuple[int, str]] = {}

    @property
    def conversions(self) -> Mapping[str, Convert]:
        """For `ApiServer.open`."""
        return dict.fromkeys(self._names, self._convert)

    @property
    def _names(self) -> frozenset[str]:
        return frozenset(name for name in CONVERTED if name.partition(".")[2] not in self._others)

    def join(self, server: ApiServer) -> None:
        """Complete and check what is written, and look up definitions, in this server."""
        self._server = server
        checked = self._names | (_CAPT if "capt" not in self._without else frozenset())
        checked |= _IPAM if "ipam" not in self._without else frozenset()
        lookups = Lookups(server.client(SYSTEM))
        ClusterAdmission(self._convert, checked, lambda: lookups).register(server.admission)

    async def define(self, server: ApiServer) -> None:
        """Define the kinds, and list who looks after them in the inventory of providers."""
        from ironbell.app.cluster_inventory import list_providers

        await server.define(await load(lambda: _documents(self._others, self._without)))
        await list_providers(server.client(SYSTEM), self._without)

    def _convert(self, value: dict[str, Any], api_version: str) -> dict[str, Any]:
        from ironbell.api.conversion.convert import convert
        from ironbell.api.conversion.errors import ConversionError

        try:
            return convert(value, api_version, self._api_version_of)
        except ConversionError as error:
            raise BadRequest(
                f"conversion for {value.get('apiVersion')}, Kind={value.get('kind')} failed: {error}"
            ) from error

    def _api_version_of(self, group: str, kind: str) -> str:
        from ironbell.contract.references import contract_api_version, definition_name

        name = definition_name(group, kind)
        entry = self._server.context.store.latest(_DEFINITIONS, ("", name)) if self._server is not None else None
        version = 0 if entry is None else entry.version
        known = self._versions.get(name)
        if known is None or known[0] != version:
            labels = {} if entry is None else msgspec.json.decode(entry.body, type=_Definition).metadata.labels
            known = self._versions[name] = (version, contract_api_version(labels, group))
        return known[1]


def _documents(others: Collection[str], without: Collection[str]) -> list[dict[str, Any]]:
    from ironbell.api import (
        addons,
        bootstrap,
        capt,
        cluster,
        clusterctl,
        clusteripam,
        clusterruntime,
        controlplane,
        inclusteripam,
    )
    from ironbell.api.crd.document import crd_document

    packages = (cluster, bootstrap, controlplane, addons, clusteripam, clusterruntime, clusterctl)
    kinds = [kind for package in packages for kind in package.KINDS if kind.group not in others]
    kinds += () if "capt" in without else capt.KINDS
    kinds += () if "ipam" in without else inclusteripam.KINDS
    return [crd_document(kind) for kind in kinds]
