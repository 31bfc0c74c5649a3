"""Objects and lists in the representation that was negotiated.

Long lists are printed in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ironbell.api.client import BadRequest, Page
from ironbell.apiserver.http.content.media import Format, View, require_view
from ironbell.apiserver.http.exchange import Exchange
from ironbell.apiserver.http.parameters import Query
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.tables import table as tables
from ironbell.apiserver.tables.cells import Printer
from ironbell.apiserver.threads import in_thread

_THREAD_FROM_ITEMS = 100


def object_body(exchange: Exchange, body: bytes, shown: Format) -> bytes:
    """One object, complete, as a table of one row, or as its metadata."""
    require_view(shown, exchange.accept, of_list=False, kind=exchange.info.kind)
    match shown.view:
        case View.OBJECT:
            return body
        case View.METADATA:
            return tables.partial_metadata(body, api_version=shown.meta_api_version)
    list_meta = {"resourceVersion": tables.resource_version(body)}
    return _table(exchange, [body], list_meta, shown)


async def list_body(exchange: Exchange, page: Page, shown: Format) -> bytes:
    """One page of a list."""
    require_view(shown, exchange.accept, of_list=True, kind=exchange.info.kind)
    meta: dict[str, Any] = {"resourceVersion": page.resource_version}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    if shown.view is View.OBJECT:
        return plain_list(exchange.info, page.items, meta)
    if shown.view is View.METADATA:
        return tables.partial_metadata_list(page.items, meta, api_version=shown.meta_api_version)
    if len(page.items) < _THREAD_FROM_ITEMS:
        return _table(exchange, page.items, meta, shown)
    return await in_thread(_table, exchange, page.items, meta, shown)


def plain_list(info: ResourceInfo, items: Sequence[bytes], meta: dict[str, Any]) -> bytes:
    """Encoded objects joined to their list kind."""
    kind = info.list_kind or f"{info.kind}List"
    head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        kind.encode(), info.api_version.encode(), msgspec.json.encode(meta),
    )  # fmt: skip
    parts = [head]
    for item in items:
        parts += (item if info.custom else _untyped(info, item), b",")
    if items:
        parts.pop()
    parts.append(b"]}")
    return b"".join(parts)


def _untyped(info: ResourceInfo, item: bytes) -> bytes:
    """An item of a list of a built-in kind, without its `apiVersion` and `kind`, which the list has."""
    version, kind = b'"apiVersion":"%b"' % info.api_version.encode(), b'"kind":"%b"' % info.kind.encode()
    for first, second in ((version, kind), (kind, version)):
        if item.startswith(b"{%b,%b," % (first, second)):
            return b"{" + item[len(first) + len(second) + 3 :]
    value = msgspec.json.decode(item, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: part for name, part in value.items() if name not in ("apiVersion", "kind")})


def table_printer(info: ResourceInfo) -> Printer:
    """The printer of a resource's table."""
    from ironbell.apiserver.tables.columns import printer  # for the first table, not for a start

    return printer(info.group, info.kind, info.columns)


def include(query: Query) -> tables.Include:
    """The part of objects that a table's rows carry."""
    requested = query.get("includeObject", "")
    try:
        return tables.Include(requested) if requested else tables.Include.METADATA
    except ValueError as error:
        raise BadRequest(f"includeObject={requested!r} is unknown: use None, Metadata or Object") from error


def _table(exchange: Exchange, items: Sequence[bytes], meta: dict[str, Any], shown: Format) -> bytes:
    return tables.table(
        table_printer(exchange.info),
        items,
        list_meta=meta,
        now=exchange.server.clock.now(),
        include=include(exchange.query),
        api_version=shown.meta_api_version,
    )
