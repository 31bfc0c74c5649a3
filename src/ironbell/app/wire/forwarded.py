"""Requests over HTTP through a trusted proxy are treated as requests of the machine behind it."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ironbell.contract.servers.identity import Network, forwarded_for

HEADER = "X-Forwarded-For"


def forwarding(proxies: Sequence[Network]) -> Middleware:
    """Middleware that gives handlers the machine's address; without proxies the header is ignored."""

    @web.middleware
    async def forwarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        peer = request.remote or ""
        machine = forwarded_for(peer, ",".join(request.headers.getall(HEADER, [])), proxies) if proxies else peer
        return await handler(request if machine == peer else request.clone(remote=machine))

    return forwarded
