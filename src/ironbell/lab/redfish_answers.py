"""The wire format that virtual BMCs share: JSON bodies, collections, errors.

Source: DMTF DSP0266 sections 8 (responses, errors).
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

ENABLED = ("Disabled", "Once", "Continuous")


async def read_body(request: web.Request) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        HTTPBadRequest: the body is not a JSON object.
    """
    try:
        value = msgspec.json.decode(await request.read())
    except msgspec.DecodeError:
        raise web.HTTPBadRequest(text="malformed JSON") from None
    if not isinstance(value, dict):
        raise web.HTTPBadRequest(text="a JSON object is needed")
    return value


def answer(document: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """A response with a document."""
    return web.Response(
        body=msgspec.json.encode(document),
        status=status,
        content_type="application/json",
        headers={"OData-Version": "4.0", **(headers or {})},
    )


def collection(path: str, kind: str, member: str) -> web.Response:
    """A collection of one member."""
    return answer(
        {
            "@odata.id": path,
            "@odata.type": f"#{kind}.{kind}",
            "Name": kind,
            "Members@odata.count": 1,
            "Members": [{"@odata.id": member}],
        }
    )


def error(status: int, code: str, message: str) -> web.Response:
    """An error in Redfish's form."""
    info = [{"MessageId": code, "Message": message}]
    return answer({"error": {"code": code, "message": message, "@Message.ExtendedInfo": info}}, status=status)
