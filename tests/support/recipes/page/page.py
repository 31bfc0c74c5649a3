"""The page of all Clusters."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from aiohttp import web

from ironbell.api.client import ApiError
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.listing import Summary, summaries

_HEAD = "<tr><th>Namespace<th>Name<th>Version<th>State"


def page(clusters: list[Summary]) -> str:
    """Return the table as a document. Names and messages come from users, so that every text is escaped. Pure."""
    rows = [
        (meta.get("namespace", ""), meta["name"], item.version, item.standing.message or item.standing.status)
        for item in clusters
        for meta in (item.cluster["metadata"],)
    ]
    lines = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows)
    return f"<!doctype html>\n<meta charset=utf-8>\n<title>Clusters</title>\n<table>\n{_HEAD}\n{lines}\n</table>\n"


def routes(api_of: Callable[[web.Request], HttpApi]) -> list[web.RouteDef]:
    """`/clusters`. `api_of` is the Kubernetes API as the person who sent a request may use it."""

    async def clusters(request: web.Request) -> web.Response:
        try:
            found = await summaries(api_of(request), "")
        except ApiError as error:
            return web.Response(status=error.code, text=error.message)
        return web.Response(text=page(found), content_type="text/html", charset="utf-8")

    return [web.get("/clusters", clusters)]
