"""Server-side representations other than the object itself: Tables and metadata only.

Clients ask for them in `Accept` (`as=Table`, `as=PartialObjectMetadata`, `as=PartialObjectMetadataList`); kubectl's
`get` prints nothing but Tables. All functions take encoded objects and return encoded bodies.

Source: kubernetes/apimachinery: pkg/apis/meta/v1/types.go (Table, PartialObjectMetadata);
kubernetes/apiserver: pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from ironbell.apiserver.tables.cells import Printer

META_API_VERSION = "meta.k8s.io/v1"


class Include(Enum):
    """The part of objects in a table's rows (`includeObject`)."""

    NONE = "None"
    METADATA = "Metadata"
    OBJECT = "Object"


class _Head(msgspec.Struct, gc=False):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_HEAD = msgspec.json.Decoder(_Head)
_ENCODER = msgspec.json.Encoder()


def partial_metadata(body: bytes, *, api_version: str = META_API_VERSION) -> bytes:
    """`PartialObjectMetadata` of one encoded object."""
    metadata = bytes(_HEAD.decode(body).metadata)
    return b'{"kind":"PartialObjectMetadata","apiVersion":"%b","metadata":%b}' % (api_version.encode(), metadata)


def partial_metadata_list(
    items: Sequence[bytes], list_meta: dict[str, Any], *, api_version: str = META_API_VERSION
) -> bytes:
    """`PartialObjectMetadataList` of encoded objects."""
    parts = b",".join(partial_metadata(item, api_version=api_version) for item in items)
    return b'{"kind":"PartialObjectMetadataList","apiVersion":"%b","metadata":%b,"items":[%b]}' % (
        api_version.encode(),
        _ENCODER.encode(list_meta),
        parts,
    )


def table(
    printer: Printer,
    items: Sequence[bytes],
    *,
    list_meta: dict[str, Any],
    now: datetime,
    include: Include = Include.METADATA,
    headers: bool = True,
    api_version: str = META_API_VERSION,
) -> bytes:
    """A `Table` with one row for each encoded object; a watch sends the headers with the first event only."""
    order = printer.order
    if order is not None:
        items = sorted(items, key=lambda item: order(msgspec.json.decode(item)))
    return _ENCODER.encode(
        {
            "kind": "Table",
            "apiVersion": api_version,
            "metadata": list_meta,
            "columnDefinitions": printer.definitions() if headers else None,
            "rows": [_row(printer, item, now=now, include=include, api_version=api_version) for item in items],
        }
    )


def resource_version(body: bytes) -> str:
    """`metadata.resourceVersion` of an encoded object, empty without one."""
    metadata = msgspec.json.decode(_HEAD.decode(body).metadata)
    return str(metadata.get("resourceVersion", ""))


def _row(printer: Printer, body: bytes, *, now: datetime, include: Include, api_version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": printer.row(msgspec.json.decode(body), now), "object": None}
    if include is Include.METADATA:
        row["object"] = msgspec.Raw(partial_metadata(body, api_version=api_version))
    elif include is Include.OBJECT:
        row["object"] = msgspec.Raw(body)
    return row
