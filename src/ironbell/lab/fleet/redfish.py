"""The BMCs of a simulated fleet: one Redfish service, where each server's BMC has an address of its own.

The address that receives a request selects the server. Source: DMTF DSP0266 (protocol), DSP0268 (schemas).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from ironbell.lab.fleet import inventory
from ironbell.lab.fleet.server import SimServer
from ironbell.lab.redfish_answers import (
    ENABLED,
    NEED_POWER,
    OPEN_PATHS,
    RESET,
    SESSIONS,
    SYSTEM,
    Sessions,
    answer,
    boot_and_actions,
    error,
    read_body,
    reset_types,
    service_root,
)

USER: Final = "admin"
TARGETS: Final = ("None", "Pxe", "Hdd", "Cd", "BiosSetup", "UefiHttp")
_BACKLOG: Final = 128


@dataclass
class _Bmc(Sessions):
    """One BMC with its sessions."""

    evicts_oldest = True

    server: SimServer


class FleetBmcs:
    """All BMCs of a fleet."""

    def __init__(self, servers: Iterable[SimServer], password: str) -> None:
        self._bmcs: Mapping[str, _Bmc] = {server.server.bmc_address: _Bmc(USER, password, server) for server in servers}

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
        if not bmc.admits(request):
            return error(401, "Base.1.0.AccessDenied", "Authentication is missing or wrong.")
        match request.method:
            case "GET":
                return _read(bmc.server, request.path)
            case "POST" if request.path == SESSIONS:
                return await bmc.log_in(request)
            case "DELETE" if request.path.startswith(f"{SESSIONS}/"):
                return await bmc.log_out(request)
            case "PATCH" if request.path == SYSTEM:
                return await _change_boot(bmc.server, request)
            case "POST" if request.path == RESET:
                return await _reset(bmc.server, request)
        return error(405, "Base.1.0.OperationNotAllowed", "This BMC cannot do that.")


def _read(server: SimServer, path: str) -> web.Response:
    if path == "/redfish":
        return answer({"v1": "/redfish/v1/"})
    if path in OPEN_PATHS:
        return answer(service_root("Ironbell BMC (simulated)", server.server.uuid))
    if path == SYSTEM:
        return answer(_system(server))
    document = inventory.documents(server.server).get(path)
    if document is None:
        return error(404, "Base.1.0.ResourceMissingAtURI", f"There is nothing at {path}.")
    return answer({"@odata.id": path, **document})


def _system(server: SimServer) -> inventory.Document:
    state = server.state
    return {
        "@odata.id": SYSTEM,
        **inventory.system(server.server),
        "PowerState": "On" if state.on else "Off",
        **boot_and_actions(enabled=state.enabled, target=state.target, targets=TARGETS, mode="UEFI", resets=_RESETS),
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
    if reset_type in NEED_POWER and not server.state.on:
        return error(409, "Base.1.0.ActionNotSupported", "The system is off.")
    await _RESETS[reset_type](server)
    return web.Response(status=204)


_RESETS: Final[Mapping[str, Callable[[SimServer], Awaitable[None]]]] = reset_types(
    on=SimServer.on, off=SimServer.off, shut_down=SimServer.off, cycle=SimServer.cycle
)
