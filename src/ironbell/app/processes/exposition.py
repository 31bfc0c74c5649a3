"""The responses that every process gives over HTTP about itself: that it runs, and its metrics."""

from __future__ import annotations

import asyncio

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


async def healthy(_request: web.Request) -> web.Response:
    """Respond while the event loop runs."""
    return web.Response(text="ok")


async def metrics(_request: web.Request) -> web.Response:
    """Respond with all metrics, in Prometheus' text format."""
    body = await asyncio.to_thread(generate_latest)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
