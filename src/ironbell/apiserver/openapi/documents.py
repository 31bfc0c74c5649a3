"""OpenAPI documents of the served resources: version 3 per group and version, version 2 for everything.

kubectl explains, validates and computes patches with these. Documents are built on request and kept until the table of
resources changes; the hash in a version 3 address lets clients keep theirs.

Source: kubernetes/kube-openapi: pkg/handler3/handler.go; kubernetes/apiextensions-apiserver:
pkg/controller/openapi/builder/builder.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from ironbell.apiserver.discovery import entries, prefix
from ironbell.apiserver.openapi import v2 as openapi_v2
from ironbell.apiserver.openapi import v2_protobuf as openapi_v2_protobuf
from ironbell.apiserver.openapi import v3 as openapi_v3
from ironbell.apiserver.openapi.schemas import schemas
from ironbell.apiserver.resources import ResourceInfo, Resources


class OpenApi:
    """The documents of one table of resources. All methods may take tens of milliseconds: call them in a thread."""

    def __init__(self, resources: Resources, version: str) -> None:
        self._resources, self._version = resources, version
        self._v3: dict[str, tuple[tuple[ResourceInfo, ...], bytes, str]] = {}
        self._v2: dict[bool, tuple[int, bytes]] = {}

    def index(self) -> bytes:
        """The response to `/openapi/v3`: an address with hash for each group and version."""
        infos = self._resources.all()
        addresses = {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._document(path, infos)[1]}"}
            for path in dict.fromkeys(prefix(entry.group, entry.version) for entry in entries(infos))
        }
        return msgspec.json.encode({"paths": addresses})

    def v3(self, path: str) -> tuple[bytes, str] | None:
        """The document of `api/VERSION` or `apis/GROUP/VERSION` with its hash; None if that is not served."""
        infos = self._resources.all()
        if path not in {prefix(entry.group, entry.version) for entry in entries(infos)}:
            return None
        return self._document(path, infos)

    def v2(self, *, protobuf: bool = False) -> bytes:
        """The whole API in version 2, as JSON or as protocol buffers."""
        generation = self._resources.generation
        kept = self._v2.get(protobuf)
        if kept is None or kept[0] != generation:
            infos = self._resources.all()
            document = openapi_v2.document(entries(infos), schemas(infos), self._version)
            write = openapi_v2_protobuf.encode if protobuf else msgspec.json.encode
            kept = self._v2[protobuf] = (generation, write(document))
        return kept[1]

    def _document(self, path: str, infos: Sequence[ResourceInfo]) -> tuple[bytes, str]:
        members = tuple(info for info in infos if prefix(info.group, info.version) == path)
        kept = self._v3.get(path)
        if kept is None or kept[0] != members:
            served = [entry for entry in entries(members) if prefix(entry.group, entry.version) == path]
            body = msgspec.json.encode(openapi_v3.document(served, schemas(members), self._version))
            digest = hashlib.sha512(body).hexdigest().upper()
            kept = self._v3[path] = (members, body, digest)
        return kept[1], kept[2]
