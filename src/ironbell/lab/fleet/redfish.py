"""The BMCs of a simulated fleet: one Redfish service, where each server's BMC has an address of its own.

The address that receives a request selects the server. Source: DMTF DSP0266 (protocol), DSP0268 (schemas).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from ironbell.lab.fleet import inventory
from ironbell.lab.fleet.inventory import MANAGER, SYSTEM
from ironbell.lab.fleet.server import SimServer
from ironbell.lab.redfish_answers import ENABLED, answer, error, read_body

USER: Final = "admin"
SESSIONS: Final = "/redfish/v1/SessionService/Sessions"
MAX_SESSIONS: Final = 16
TARGETS: Final = ("None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp")
_RESET: Final = f"{SYSTEM}/Actions/ComputerSystem.Reset"
_BACKLOG: Final = 128
_OPEN: Final = frozenset({"/redfish", "/redfish/v1", "/redfish/v1/"})


@dataclass
class _Bmc:
    """One BMC with its sessions."""

    server: SimServer
    sessions: dict[str, str] = field(default_factory=dict)


class FleetBmcs:
    """All BMCs of a fleet."""

    def __init__(self, servers: Iterable[SimServer], password: str) -> None:
        self._bmcs: Mapping[str, _Bmc] = {server.server.bmc_address: _Bmc(server) for server in servers}
        self._password = password

    async def listen(self, port: int, tls: ssl.SSLContext) -> Callable[[], Awaitable[None]]:
        """Listen on this port of every BMC's address; return a function that ends it. Cancellation point.

        Raises:
            OSError: an address has something else on this port.
        """
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        loop = asyncio.get_running_loop()
        if runner.server is None:
            raise RuntimeError("the runner has been set up and has no server")
        try:
            listening = await loop.create_server(
                runner.server, list(self._bmcs), port, ssl=tls, backlog=_BACKLOG, reuse_address=True
            )
        except OSError:
            await runner.cleanup()
            raise

        async def end() -> None:
            listening.close()
            await runner.cleanup()

        return end

    def _application(self) -> web.Application:
        application = web.Application()
        application.add_routes([web.route("*", "/{path:.*}", self._handle)])
        return application

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        local = request.transport.get_extra_info("sockname") if request.transport is not None else None
        bmc = self._bmcs.get(local[0]) if local else None
        if bmc is None:
            return error(404, "Base.1.0.ResourceMissingAtURI", "There is no BMC here.")
        if bmc.server.meets("bmc_unreachable"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        logs_in = request.method == "POST" and request.path == SESSIONS
        if request.path not in _OPEN and not logs_in and not self._is_known(bmc, request):
            return error(401, "Base.1.0.AccessDenied", "Authentication is missing or wrong.")
        match request.method:
            case "GET":
                return _read(bmc.server, request.path)
            case "POST" if logs_in:
                return await self._log_in(bmc, request)
            case "DELETE" if request.path.startswith(f"{SESSIONS}/"):
                session = request.path.removeprefix(f"{SESSIONS}/")
                bmc.sessions = {token: identity for token, identity in bmc.sessions.items() if identity != session}
                return web.Response(status=204)
            case "PATCH" if request.path == SYSTEM:
                return await _change_boot(bmc.server, request)
            case "POST" if request.path == _RESET:
                return await _reset(bmc.server, request)
        return error(405, "Base.1.0.OperationNotAllowed", "This BMC cannot do that.")

    def _is_known(self, bmc: _Bmc, request: web.Request) -> bool:
        if request.headers.get("X-Auth-Token", "") in bmc.sessions:
            return True
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        return self._may_enter(user, password)

    def _may_enter(self, user: str, password: str) -> bool:
        return hmac.compare_digest(password.encode(), self._password.encode()) and user == USER

    async def _log_in(self, bmc: _Bmc, request: web.Request) -> web.Response:
        body = await read_body(request)
        if not self._may_enter(str(body.get("UserName", "")), str(body.get("Password", ""))):
            return error(401, "Base.1.0.AccessDenied", "User name or password is wrong.")
        if len(bmc.sessions) >= MAX_SESSIONS:
            # as many BMCs do: the oldest session ends
            bmc.sessions.pop(next(iter(bmc.sessions)))
        token, identity = secrets.token_hex(16), secrets.token_hex(4)
        bmc.sessions[token] = identity
        location = f"{SESSIONS}/{identity}"
        document = {"@odata.id": location, "Id": identity, "Name": "Session", "UserName": USER}
        return answer(document, status=201, headers={"X-Auth-Token": token, "Location": location})


def _read(server: SimServer, path: str) -> web.Response:
    if path == "/redfish":
        return answer({"v1": "/redfish/v1/"})
    if path in _OPEN:
        return answer(_root(server))
    if path == SYSTEM:
        return answer(_system(server))
    document = inventory.documents(server.server).get(path)
    if document is None:
        return error(404, "Base.1.0.ResourceMissingAtURI", f"There is nothing at {path}.")
    return answer({"@odata.id": path, **document})


def _root(server: SimServer) -> inventory.Document:
    return {
        "@odata.id": "/redfish/v1/",
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Ironbell BMC (simulated)",
        "RedfishVersion": "1.6.0",
        "UUID": server.server.uuid,
        "Systems": {"@odata.id": "/redfish/v1/Systems"},
        "Managers": {"@odata.id": MANAGER.rpartition("/")[0]},
        "SessionService": {"@odata.id": "/redfish/v1/SessionService"},
        "Links": {"Sessions": {"@odata.id": SESSIONS}},
    }


def _system(server: SimServer) -> inventory.Document:
    state = server.state
    return {
        "@odata.id": SYSTEM,
        **inventory.system(server.server),
        "PowerState": "On" if state.on else "Off",
        "Boot": {
            "BootSourceOverrideEnabled": state.enabled,
            "BootSourceOverrideTarget": state.target,
            "BootSourceOverrideTarget@Redfish.AllowableValues": TARGETS,
            "BootSourceOverrideMode": "UEFI",
        },
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": _RESET,
                "ResetType@Redfish.AllowableValues": list(_RESETS),
            }
        },
    }


async def _change_boot(server: SimServer, request: web.Request) -> web.Response:
    boot = (await read_body(request)).get("Boot")
    if not isinstance(boot, dict):
        return error(400, "Base.1.0.PropertyMissing", "Only Boot can be changed.")
    target = boot.get("BootSourceOverrideTarget", server.state.target)
    enabled = boot.get("BootSourceOverrideEnabled", "Once" if target != "None" else server.state.enabled)
    for name, value, allowed in (
        ("BootSourceOverrideTarget", target, TARGETS),
        ("BootSourceOverrideEnabled", enabled, ENABLED),
        ("BootSourceOverrideMode", boot.get("BootSourceOverrideMode", "UEFI"), ("UEFI",)),
    ):
        if value not in allowed:
            return error(400, "Base.1.0.PropertyValueNotInList", f"{name} is not allowed.")
    server.change(target=target, enabled=enabled)
    return web.Response(status=204)


async def _reset(server: SimServer, request: web.Request) -> web.Response:
    reset_type = str((await read_body(request)).get("ResetType"))
    if reset_type not in _RESETS:
        return error(400, "Base.1.0.ActionParameterNotSupported", "ResetType is not allowed.")
    if reset_type in _NEED_POWER and not server.state.on:
        return error(409, "Base.1.0.ActionNotSupported", "The system is off.")
    await _RESETS[reset_type](server)
    return web.Response(status=204)


_RESETS: Final[Mapping[str, Callable[[SimServer], Awaitable[None]]]] = {
    "On": SimServer.on,
    "ForceOn": SimServer.on,
    "ForceOff": SimServer.off,
    "GracefulShutdown": SimServer.off,
    "PushPowerButton": SimServer.off,
    "ForceRestart": SimServer.cycle,
    "GracefulRestart": SimServer.cycle,
    "PowerCycle": SimServer.cycle,
}
_NEED_POWER: Final = {"ForceRestart", "GracefulRestart", "PowerCycle"}
