"""A Redfish service for tests: real HTTPS, documents that can be bent, and faults on demand."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from ironbell.bmc.redfish import RedfishTarget
from ironbell.bmc.redfish.http import Endpoint
from ironbell.lab.certificates import create_certificates
from ironbell.lab.files import LabFolder

SYSTEM = "/redfish/v1/Systems/1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SESSIONS = "/redfish/v1/Sessions"
SLOT = "/redfish/v1/Managers/1/VirtualMedia/Cd"
Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


def _documents() -> dict[str, dict[str, Any]]:
    def link(path: str) -> dict[str, str]:
        return {"@odata.id": path}

    allowable = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]
    slot_actions = {
        f"#VirtualMedia.{name}": {"target": f"{SLOT}/Actions/VirtualMedia.{name}"}
        for name in ("InsertMedia", "EjectMedia")
    }
    return {
        "/redfish/v1/": {
            "Systems": link("/redfish/v1/Systems"),
            "Managers": link("/redfish/v1/Managers"),
            "Links": {"Sessions": link(SESSIONS)},
        },
        "/redfish/v1/Systems": {"Members": [link(SYSTEM)]},
        SYSTEM: {
            "Id": "1",
            "Name": "node",
            "PowerState": "Off",
            "Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"},
            "Actions": {
                "#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": allowable},
            },
        },
        "/redfish/v1/Managers": {"Members": [link("/redfish/v1/Managers/1")]},
        "/redfish/v1/Managers/1": {"VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia")},
        "/redfish/v1/Managers/1/VirtualMedia": {"Members": [link(SLOT)]},
        SLOT: {"MediaTypes": ["CD", "DVD"], "Inserted": False, "Image": "", "Actions": slot_actions},
    }


@dataclass
class Service:
    """What the service holds and what was asked of it."""

    authority: str
    port: int = 0
    password: str = "right"
    has_sessions: bool = True
    documents: dict[str, dict[str, Any]] = field(default_factory=_documents)
    faults: list[Fault] = field(default_factory=list)
    """Each takes one request, in order; None lets it through. The last one stays when it is all there is."""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    opened: int = 0
    transports: set[asyncio.Transport] = field(default_factory=set)

    @property
    def system(self) -> dict[str, Any]:
        return self.documents[SYSTEM]

    @property
    def passwords(self) -> list[str]:
        """Those that were sent to open sessions."""
        return [body["Password"] for method, path, body in self.requests if method == "POST" and path == SESSIONS]

    @property
    def resets(self) -> list[str]:
        return [body["ResetType"] for method, path, body in self.requests if method == "POST" and path == RESET]

    def target(
        self,
        *,
        insecure: bool = False,
        authority: bool = True,
        password: str = "right",  # noqa: S107
        name: str = "",
    ) -> RedfishTarget:
        endpoint = Endpoint(
            host="127.0.0.1",
            port=self.port,
            username="admin",
            password=password,
            insecure_tls=insecure,
            ca_certificate=self.authority if authority else "",
        )
        return RedfishTarget(endpoint, name)

    def fail(
        self, path: str, fault: Callable[[], Awaitable[web.StreamResponse]], *, times: int = 1, method: str = ""
    ) -> None:
        """Answer the next requests for a path by a fault."""
        left = times

        async def act(request: web.Request) -> web.StreamResponse | None:
            nonlocal left
            if left and request.path == path and method in ("", request.method):
                left -= 1
                return await fault()
            return None

        self.faults.append(act)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self.transports.add(request.transport)
        text = await request.read()
        body = msgspec.json.decode(text) if text else None
        self.requests.append((request.method, request.path, body))
        for fault in self.faults:
            answer = await fault(request)
            if answer is not None:
                return answer
        if request.path == SESSIONS and request.method == "POST":
            return self._log_in(body)
        if request.path != "/redfish/v1/" and not self._may(request):
            return _json({"error": {"message": "no valid session"}}, 401)
        return self._answer(request, body)

    def _log_in(self, body: Any) -> web.StreamResponse:
        if not self.has_sessions:
            return _json({}, 404)
        if body != {"UserName": "admin", "Password": self.password}:
            return _json({"error": {"message": "wrong password"}}, 401)
        self.opened += 1
        token = f"token-{self.opened}"
        self.sessions.add(token)
        headers = {"X-Auth-Token": token, "Location": f"https://bmc.example{SESSIONS}/{token}"}
        return web.json_response({}, status=201, headers=headers)

    def _may(self, request: web.Request) -> bool:
        basic = "Basic " + base64.b64encode(f"admin:{self.password}".encode()).decode()
        return request.headers.get("X-Auth-Token") in self.sessions or request.headers.get("Authorization") == basic

    def _answer(self, request: web.Request, body: Any) -> web.StreamResponse:
        if request.method == "DELETE":
            self.sessions.discard(request.path.rpartition("/")[2])
            return web.Response(status=204)
        if request.method == "POST":
            return self._act(request.path, body)
        document = self.documents.get(request.path)
        if document is None:
            return _json({"error": {"message": "no such resource"}}, 404)
        if request.method == "PATCH":
            for key, value in body.items():
                document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
            return web.Response(status=204)
        return _json(document, 200)

    def _act(self, path: str, body: Any) -> web.StreamResponse:
        if path == RESET:
            self.system["PowerState"] = "Off" if body["ResetType"] in ("ForceOff", "GracefulShutdown") else "On"
        elif path.startswith(SLOT):
            inserts = path.endswith("InsertMedia")
            self.documents[SLOT] |= {"Inserted": inserts, "Image": body.get("Image", "")}
        else:
            return _json({}, 404)
        return web.Response(status=204)


def _json(document: Any, status: int) -> web.StreamResponse:
    return web.Response(body=msgspec.json.encode(document), status=status, content_type="application/json")


@asynccontextmanager
async def _serving(handler: Any, context: ssl.SSLContext) -> AsyncIterator[int]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    assert site._server is not None
    try:
        yield site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def redfish_service(place: Path) -> AsyncIterator[Service]:
    """A running service; its certificates are kept in a folder."""
    place.mkdir(exist_ok=True)
    folder = LabFolder(place)
    await asyncio.to_thread(create_certificates, folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder.certificate, folder.key)
    service = Service(authority=folder.authority.read_text())
    async with _serving(service.handle, context) as port:
        service.port = port
        yield service
    # clients that keep their connections would leave them half closed
    for transport in service.transports:
        transport.abort()
    await asyncio.sleep(0)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A running service."""
    async with redfish_service(tmp_path) as service:
        yield service
