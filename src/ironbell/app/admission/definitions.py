"""Cluster API's kinds in the embedded API: defined once the API answers, and converted in its process.

Their definitions take longer than all others together, and the servers for machines need none of them. The kinds of a
component that is left out are not defined: its replacement brings its own definitions and webhooks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ironbell.api.client import BadRequest
from ironbell.apiserver.access.identity import SYSTEM
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.resources import Convert
from ironbell.app.admission.kinds import ClusterAdmission
from ironbell.app.admission.lookups import Lookups
from ironbell.app.systems import converted_in, kinds_of, systems_without
from ironbell.base.threads import load
from ironbell.contract.system import Definitions

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    labels: dict[str, str] = {}


class _Definition(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class ClusterKinds:
    """Converts, completes and checks objects of these kinds; `join` is called right after the server's start."""

    def __init__(self, without: Collection[str] = ()) -> None:
        """`without` names components whose kinds other managers define."""
        self._without = frozenset(without)
        self._systems = systems_without(self._without)
        self._server: ApiServer | None = None
        self._versions: dict[str, tuple[int, str]] = {}

    @property
    def conversions(self) -> Mapping[str, Convert]:
        """The conversions for `ApiServer.open`."""
        return dict.fromkeys(converted_in(self._systems), self._convert)

    def join(self, server: ApiServer) -> None:
        """Complete and check writes, and look up definitions, in this server."""
        self._server = server
        checked = converted_in(self._systems).union(*(system.admitted for system in self._systems))
        lookups = Lookups(server.client(SYSTEM))
        ClusterAdmission(self._convert, checked, lambda: lookups).register(server.admission)

    async def define(self, server: ApiServer) -> None:
        """Define the kinds, and record their providers in the inventory."""
        from ironbell.app.admission.inventory import list_providers

        await server.define(await load(self._documents))
        await list_providers(server.client(SYSTEM), self._without)

    def _documents(self) -> list[dict[str, Any]]:
        from ironbell.api.crd.document import crd_document

        optional = [system for system in self._systems if system.definitions is not Definitions.ALWAYS]
        return [crd_document(kind) for kind in kinds_of(optional, inventory=True)]

    def _convert(self, value: dict[str, Any], api_version: str) -> dict[str, Any]:
        from ironbell.api.conversion.convert import convert
        from ironbell.api.conversion.paths import ConversionError

        try:
            return convert(value, api_version, self._api_version_of)
        except ConversionError as error:
            raise BadRequest(
                f"conversion for {value.get('apiVersion')}, Kind={value.get('kind')} failed: {error}"
            ) from error

    def _api_version_of(self, group: str, kind: str) -> str:
        from ironbell.contract.clusters.references import contract_api_version, definition_name

        name = definition_name(group, kind)
        entry = self._server.context.store.latest(_DEFINITIONS, ("", name)) if self._server is not None else None
        version = 0 if entry is None else entry.version
        known = self._versions.get(name)
        if known is None or known[0] != version:
            labels = {} if entry is None else msgspec.json.decode(entry.body, type=_Definition).metadata.labels
            known = self._versions[name] = (version, contract_api_version(labels, group))
        return known[1]
