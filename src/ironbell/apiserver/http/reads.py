"""GET of one object and of a collection.

Source: kubernetes/apiserver: pkg/endpoints/handlers/get.go.
"""

from __future__ import annotations

from ironbell.apiserver.http.content.answers import answer
from ironbell.apiserver.http.exchange import Exchange
from ironbell.apiserver.http.parameters import list_options
from ironbell.apiserver.http.server.message import Response
from ironbell.apiserver.http.views import list_body, object_body


async def get(exchange: Exchange) -> Response:
    """One object or one of its subresources."""
    shown, target = exchange.format(), exchange.target
    body = await exchange.api.get(
        exchange.info.collection, target.namespace, target.name, subresource=target.subresource
    )
    return await answer(exchange.request, object_body(exchange, body, shown), media_type=shown.media_type)


async def list_(exchange: Exchange) -> Response:
    """One page of a collection."""
    shown, options = exchange.format(), list_options(exchange.query)
    page = await exchange.api.list(exchange.info.collection, exchange.target.namespace, options)
    return await answer(exchange.request, await list_body(exchange, page, shown), media_type=shown.media_type)
