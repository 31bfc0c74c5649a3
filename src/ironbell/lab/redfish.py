"""A virtual BMC: Redfish over HTTPS in front of one virtual machine.

Sessions and Basic authentication, one System, boot override, all reset types that make sense. Source: DMTF DSP0266
(protocol), DSP0268 (schemas).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import structlog
from aiohttp import web

from ironbell.base.errors import IronbellError
from ironbell.lab.machine import PowerState, Target, VirtualMachine
from ironbell.lab.redfish_answers import (
    ENABLED,
    MANAGER,
    NEED_POWER,
    RESET,
    SESSIONS,
    SYSTEM,
    Sessions,
    answer,
    boot_and_actions,
    collection,
    error,
    read_body,
    reset_types,
    service_root,
)

_log = structlog.get_logger()

SLOW_S = 2.5
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Fault(Enum):
    """A kind of fault of a virtual BMC, for tests and for trying out how a fault looks."""

    NONE = "none"
    UNREACHABLE = "unreachable"
    """Connections are cut without an answer."""
    WRONG_PASSWORD = "wrong-password"  # noqa: S105
    SLOW = "slow"
    """Every answer takes `SLOW_S`."""
    BUSY = "busy"
    """503 to everything."""
    BROKEN = "broken"
    """Power actions are answered with 500 and do nothing."""


@dataclass
class Faults:
    """The fault that a BMC has now."""

    current: Fault = Fault.NONE

    async def delay(self) -> None:
        if self.current is Fault.SLOW:
            await asyncio.sleep(SLOW_S)


@dataclass
class VirtualBmc(Sessions):
    """One BMC."""

    machine: VirtualMachine
    faults: Faults = field(default_factory=Faults)

    def application(self) -> web.Application:
        """The service, to be run behind TLS."""
        application = web.Application(middlewares=[self._guard])
        application.add_routes(
            [
                web.get("/redfish", self._versions),
                web.get("/redfish/v1", self._root),
                web.get("/redfish/v1/", self._root),
                web.post(SESSIONS, self.log_in),
                web.delete(SESSIONS + "/{id}", self.log_out),
                web.get("/redfish/v1/Systems", self._systems),
                web.get(SYSTEM, self._system),
                web.patch(SYSTEM, self._change_system),
                web.post(RESET, self._reset),
                web.get("/redfish/v1/Managers", self._managers),
                web.get(MANAGER, self._manager),
            ]
        )
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.faults.current is Fault.UNREACHABLE:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        await self.faults.delay()
        if self.faults.current is Fault.BUSY:
            return error(503, "Base.1.0.ServiceTemporarilyUnavailable", "The service is busy.")
        if not self.admits(request):
            return error(401, "Base.1.0.AccessDenied", "Authentication is missing or wrong.")
        return await handler(request)

    def is_account(self, user: str, password: str) -> bool:
        return self.faults.current is not Fault.WRONG_PASSWORD and super().is_account(user, password)

    async def _versions(self, _request: web.Request) -> web.Response:
        return answer({"v1": "/redfish/v1/"})

    async def _root(self, _request: web.Request) -> web.Response:
        return answer(service_root("Ironbell virtual BMC (simulated)", self.machine.description.uuid))

    async def _systems(self, _request: web.Request) -> web.Response:
        return collection("/redfish/v1/Systems", "ComputerSystemCollection", SYSTEM)

    async def _managers(self, _request: web.Request) -> web.Response:
        return collection("/redfish/v1/Managers", "ManagerCollection", MANAGER)

    async def _manager(self, _request: web.Request) -> web.Response:
        return answer(
            {
                "@odata.id": MANAGER,
                "@odata.type": "#Manager.v1_5_0.Manager",
                "Id": "1",
                "Name": "Ironbell virtual BMC (simulated)",
                "ManagerType": "BMC",
            }
        )

    async def _system(self, _request: web.Request) -> web.Response:
        description, override = self.machine.description, self.machine.override
        return answer(
            {
                "@odata.id": SYSTEM,
                "@odata.type": "#ComputerSystem.v1_10_0.ComputerSystem",
                "Id": "1",
                "Name": description.name,
                "SystemType": "Physical",
                "Manufacturer": "Ironbell",
                "Model": "Virtual machine",
                "SerialNumber": description.uuid[-12:],
                "UUID": description.uuid,
                "PowerState": self.machine.power.value,
                "MemorySummary": {"TotalSystemMemoryGiB": description.memory / 1024},
                "ProcessorSummary": {"Count": 1, "CoreCount": description.cpus},
                **boot_and_actions(
                    enabled=override.enabled,
                    target=override.target.value,
                    targets=[target.value for target in Target],
                    mode=override.mode,
                    resets=_RESETS,
                ),
            }
        )

    async def _change_system(self, request: web.Request) -> web.Response:
        boot = (await read_body(request)).get("Boot")
        if not isinstance(boot, dict):
            return error(400, "Base.1.0.PropertyMissing", "Only Boot can be changed.")
        override = self.machine.override
        try:
            target = Target(boot.get("BootSourceOverrideTarget", override.target.value))
        except ValueError:
            return error(400, "Base.1.0.PropertyValueNotInList", "BootSourceOverrideTarget is not allowed.")
        enabled = boot.get("BootSourceOverrideEnabled", "Once" if target is not Target.NONE else override.enabled)
        if enabled not in ENABLED:
            return error(400, "Base.1.0.PropertyValueNotInList", "BootSourceOverrideEnabled is not allowed.")
        mode = "UEFI" if self.machine.description.firmware == "uefi" else "Legacy"
        if boot.get("BootSourceOverrideMode", mode) != mode:
            return error(400, "Base.1.0.PropertyValueNotInList", f"This machine boots in mode {mode} only.")
        override.target, override.enabled = target, enabled
        _log.info("boot override", machine=self.machine.description.name, target=target.value, enabled=enabled)
        return web.Response(status=204)

    async def _reset(self, request: web.Request) -> web.Response:
        reset_type = str((await read_body(request)).get("ResetType"))
        if reset_type not in _RESETS:
            return error(400, "Base.1.0.ActionParameterNotSupported", "ResetType is not allowed.")
        if self.faults.current is Fault.BROKEN:
            return error(500, "Base.1.0.InternalError", "The power controller does not answer.")
        if reset_type in NEED_POWER and self.machine.power is PowerState.OFF:
            return error(409, "Base.1.0.ActionNotSupported", "The system is off.")
        try:
            await _RESETS[reset_type](self.machine)
        except IronbellError as failure:
            return error(500, "Base.1.0.InternalError", str(failure))
        return web.Response(status=204)


_RESETS: Mapping[str, Callable[[VirtualMachine], Awaitable[None]]] = reset_types(
    on=VirtualMachine.on, off=VirtualMachine.off, shut_down=VirtualMachine.shut_down, cycle=VirtualMachine.cycle
)
