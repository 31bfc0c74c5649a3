"""The Redfish driver.

It finds its system once per session, reads which values the service allows, and sends no others. A power state that is
already reached is success.

Source: DMTF DSP0266 (actions, allowable values), DSP0268 (ComputerSystem, VirtualMedia);
bmc-toolbox/bmclib: internal/redfishwrapper (what upstream does).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironbell.api.bmc.action import PowerAction
from ironbell.api.bmc.machine import PowerState
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.bmc.driver import (
    BusyError,
    MalformedResponseError,
    RejectedError,
    UnsupportedError,
)
from ironbell.bmc.redfish.http import Document, Endpoint, RedfishHttp, listed, prepare
from ironbell.bmc.redfish.inventory import MAX_PARTS, collect

RESET = "#ComputerSystem.Reset"
BOOT_TARGETS = {
    "pxe": "Pxe",
    "disk": "Hdd",
    "cdrom": "Cd",
    "bios": "BiosSetup",
    "usb": "Usb",
    "floppy": "Floppy",
    "diag": "Diags",
    "none": "None",
    "remote_drive": "RemoteDrive",
    "sd_card": "SDCard",
    "utilities": "Utilities",
    "uefi_http": "UefiHttp",
}
MEDIA_TYPES = {"CD": ("CD", "DVD"), "DVD": ("DVD", "CD"), "Floppy": ("Floppy",), "USBStick": ("USBStick",)}
MAX_OWNERS = 8
"""Managers whose virtual media are read."""
_PROBLEMS = 3
# reset types for a command, in order of preference
RESET_TYPES: Mapping[PowerAction, tuple[str, ...]] = {
    PowerAction.ON: ("On", "ForceOn"),
    PowerAction.OFF: ("ForceOff",),
    PowerAction.SOFT: ("GracefulShutdown", "PushPowerButton"),
    PowerAction.CYCLE: ("ForceRestart", "PowerCycle"),
    PowerAction.RESET: ("ForceRestart", "PowerCycle"),
}


@dataclass(frozen=True)
class RedfishTarget:
    """A system of a service; `system_name` is needed if the service has several systems."""

    endpoint: Endpoint
    system_name: str = ""


async def connect(target: RedfishTarget) -> RedfishDriver:
    """Open a session and find the system.

    Raises:
        BmcError: by problem; see `ironbell.bmc.driver`.
    """
    await prepare(target.endpoint)
    http = RedfishHttp(target.endpoint)
    try:
        await http.open()
        return RedfishDriver(http, target, await _system_path(http, target))
    except BaseException:
        await http.close()
        raise


class RedfishDriver:
    """An open session; satisfies `driver.Driver`."""

    def __init__(self, http: RedfishHttp, target: RedfishTarget, system: str) -> None:
        self._http = http
        self._target = target
        self._system = system

    async def power_state(self) -> PowerState:
        return _power_state(await self._http.get(self._system))

    async def set_power(self, command: PowerAction) -> None:
        system = await self._http.get(self._system)
        state = _power_state(system)
        if command is PowerAction.ON and state is PowerState.ON:
            return
        if command in {PowerAction.OFF, PowerAction.SOFT} and state is PowerState.OFF:
            return
        if command in {PowerAction.CYCLE, PowerAction.RESET} and state is PowerState.OFF:
            raise RejectedError(f"{self._host}: power {command.value} needs a server that is on; power it on")
        path, allowed = await self._reset_action(system)
        kinds = RESET_TYPES.get(command, ())
        chosen = next((kind for kind in kinds if allowed is None or kind in allowed), None)
        if chosen is None:
            known = listed(allowed or ())
            raise UnsupportedError(f"{self._host}: the BMC does not support power {command.value}, only {known}")
        try:
            await self._http.request("POST", path, {"ResetType": chosen}, changes=True)
        except RejectedError:
            # some services reject a command whose state is already reached
            if not await self._is_reached(command):
                raise

    async def set_boot_device(self, device: str, *, persistent: bool, efi: bool) -> None:
        target = BOOT_TARGETS.get(device.lower())
        if target is None:
            raise UnsupportedError(f"boot device {device!r} is not valid; use one of {', '.join(BOOT_TARGETS)}")
        boot = _member(await self._http.get(self._system), "Boot")
        allowed = boot.get("BootSourceOverrideTarget@Redfish.AllowableValues")
        if isinstance(allowed, list) and allowed and target not in allowed:
            known = listed(allowed)
            raise UnsupportedError(f"{self._host}: the BMC does not support boot device {device}, only {known}")
        enabled = "Disabled" if target == "None" else "Continuous" if persistent else "Once"
        override = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
        with_mode = override | {"BootSourceOverrideMode": "UEFI" if efi else "Legacy"}
        try:
            await self._patch_system({"Boot": with_mode})
        except (RejectedError, UnsupportedError, BusyError):
            # a service with only one mode rejects requests that set it
            await self._patch_system({"Boot": override})

    async def insert_media(self, url: str, *, kind: str) -> None:
        problems = []
        for slot in await self._media_slots(kind):
            try:
                if slot.get("Inserted"):
                    await self._eject(slot)
                await self._insert(slot, url)
            except (RejectedError, UnsupportedError, BusyError) as error:
                problems.append(str(error))
            else:
                return
        raise RejectedError(f"{self._host}: no virtual media slot works: {'; '.join(problems[:_PROBLEMS])}")

    async def eject_media(self, *, kind: str) -> None:
        for slot in await self._media_slots(kind):
            if slot.get("Inserted"):
                await self._eject(slot)

    async def inventory(self) -> Inventory:
        return await collect(self._http.get, self._system)

    async def close(self) -> None:
        await self._http.close()

    @property
    def _host(self) -> str:
        return self._target.endpoint.host

    async def _reset_action(self, system: Document) -> tuple[str, set[str] | None]:
        """The path of the reset action and the allowed types; None if the service does not list them."""
        action = _member(_member(system, "Actions"), RESET)
        path = action.get("target")
        if not isinstance(path, str):
            raise UnsupportedError(f"{self._host}: the system {self._system} has no reset action")
        allowed = action.get("ResetType@Redfish.AllowableValues")
        if isinstance(allowed, list):
            return path, {str(value) for value in allowed}
        info = action.get("@Redfish.ActionInfo")
        if isinstance(info, str):
            for parameter in _list(await self._http.get(info), "Parameters"):
                if isinstance(parameter, dict) and parameter.get("Name") == "ResetType":
                    return path, set(map(str, _list(parameter, "AllowableValues"))) or None
        return path, None

    async def _is_reached(self, command: PowerAction) -> bool:
        desired = {PowerAction.ON: PowerState.ON, PowerAction.OFF: PowerState.OFF, PowerAction.SOFT: PowerState.OFF}
        return command in desired and await self.power_state() is desired[command]

    async def _patch_system(self, change: Document) -> None:
        system = (await self._http.request("GET", self._system, changes=False)).document
        try:
            await self._patch(self._system, change)
        except (RejectedError, UnsupportedError):
            # some services accept changes of the system only at its settings resource
            settings = _member(_member(system, "@Redfish.Settings"), "SettingsObject").get("@odata.id")
            if not isinstance(settings, str):
                raise
            await self._patch(settings, change)

    async def _patch(self, path: str, change: Document) -> None:
        current = await self._http.request("GET", path, changes=False)
        etag = current.headers.get("etag", "") or str(current.document.get("@odata.etag", ""))
        try:
            await self._http.request("PATCH", path, change, changes=True, etag=etag)
        except BusyError:
            if not etag:
                raise
            # in some services the ETag changes at any time, and some compare it wrongly
            await self._http.request("PATCH", path, change, changes=True)

    async def _media_slots(self, kind: str) -> list[Document]:
        desired = MEDIA_TYPES.get(kind)
        if desired is None:
            raise UnsupportedError(f"media type {kind!r} is not valid; use one of {', '.join(MEDIA_TYPES)}")
        slots: list[Document] = []
        for collection in await self._media_collections():
            for path in _members(await self._http.get(collection))[:MAX_PARTS]:
                slot = await self._http.get(path)
                if set(map(str, _list(slot, "MediaTypes"))) & set(desired):
                    slots.append({"@odata.id": path, **slot})
            if slots:
                return slots
        raise UnsupportedError(f"{self._host}: neither manager nor system has virtual media of type {kind}")

    async def _media_collections(self) -> list[str]:
        collections = []
        managers = _member(self._http.root, "Managers").get("@odata.id")
        owners = _members(await self._http.get(str(managers))) if managers else []
        for owner in [*owners[:MAX_OWNERS], self._system]:
            collection = _member(await self._http.get(owner), "VirtualMedia").get("@odata.id")
            if isinstance(collection, str):
                collections.append(collection)
        return collections

    async def _insert(self, slot: Document, url: str) -> None:
        path = _action_path(slot, "InsertMedia")
        if path is None:
            # older services insert by a change of the slot itself
            await self._patch(str(slot["@odata.id"]), {"Image": url, "Inserted": True})
            return
        try:
            await self._http.request(
                "POST", path, {"Image": url, "Inserted": True, "WriteProtected": True}, changes=True
            )
        except (RejectedError, BusyError):
            await self._http.request("POST", path, {"Image": url}, changes=True)

    async def _eject(self, slot: Document) -> None:
        path = _action_path(slot, "EjectMedia")
        if path is None:
            await self._patch(str(slot["@odata.id"]), {"Image": None, "Inserted": False})
            return
        await self._http.request("POST", path, {}, changes=True)


async def _system_path(http: RedfishHttp, target: RedfishTarget) -> str:
    """The path of the system by its name, or of the only system."""
    collection = _member(http.root, "Systems").get("@odata.id")
    if not isinstance(collection, str):
        raise UnsupportedError(f"{target.endpoint.host}: the service has no systems")
    paths = _members(await http.get(collection))
    if not target.system_name:
        if len(paths) == 1:
            return paths[0]
        if not paths:
            raise MalformedResponseError(f"{target.endpoint.host}: the service lists no systems")
        raise RejectedError(f"{target.endpoint.host}: the service has {len(paths)} systems; set redfish.systemName")
    names = []
    for path in paths:
        document = await http.get(path)
        names.append(str(document.get("Name", "")))
        if target.system_name in {names[-1], document.get("Id")}:
            return path
    raise RejectedError(
        f"{target.endpoint.host}: no system is named {target.system_name!r}; there are {listed(names) or 'none'}"
    )


def _action_path(slot: Document, name: str) -> str | None:
    path = _member(_member(slot, "Actions"), f"#VirtualMedia.{name}").get("target")
    return path if isinstance(path, str) else None


def _power_state(system: Document) -> PowerState:
    text = str(system.get("PowerState", "")).lower()
    if "off" in text and "powering" not in text:
        return PowerState.OFF
    if text in {"on", "poweringoff", "paused"}:
        return PowerState.ON
    return PowerState.OFF if text == "poweringon" else PowerState.UNKNOWN


def _member(document: Document, name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _list(document: Document, name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _members(collection: Document) -> list[str]:
    entries = _list(collection, "Members")
    return [str(entry["@odata.id"]) for entry in entries if isinstance(entry, dict) and "@odata.id" in entry]
