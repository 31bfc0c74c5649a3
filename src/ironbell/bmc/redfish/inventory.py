"""What a Redfish service tells of a machine's parts: read along its links, and brought into one form.

Services leave much out, and each something else. What is missing stays empty; a part that cannot be read is left out
and the rest is kept. How many parts of a kind are read is bounded, since every part is a request.

Source: DMTF DSP0268 (ComputerSystem, Processor, Memory, Drive, SimpleStorage, EthernetInterface, Chassis, Manager);
tinkerbell/tinkerbell: api/v1alpha1/tinkerbell/attributes.go for the form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from ironbell.api.tinkerbell.inventory import (
    Bios,
    BlockDevice,
    Bmc,
    Chassis,
    ComponentStatus,
    Cpu,
    Inventory,
    Memory,
    MemoryModule,
    NetworkInterface,
    NetworkPort,
    Product,
    Socket,
)
from ironbell.bmc.driver import BmcError
from ironbell.bmc.redfish.http import Document

Get = Callable[[str], Awaitable[Document]]
MAX_PARTS: Final = 64
"""Of one kind."""
METHOD: Final = "redfish"
_GIB: Final = 1 << 30
_MIB: Final = 1 << 20


async def collect(get: Get, system_path: str) -> Inventory:
    """Everything that the service tells. Cancellation point.

    Raises:
        BmcError: the system itself cannot be read.
    """
    system = await get(system_path)
    links = _part(system, "Links")
    processors = await _all(get, _link(system, "Processors"))
    modules = await _all(get, _link(system, "Memory"))
    nics = await _all(get, _link(system, "EthernetInterfaces"))
    chassis = await _each(get, _links(links.get("Chassis")))
    managers = await _each(get, _links(links.get("ManagedBy")))
    return Inventory(
        collection_method=METHOD,
        cpu=_cpu(system, [one for one in processors if one.get("ProcessorType") in (None, "CPU")]),
        memory=_memory(system, modules),
        block_devices=await _disks(get, system),
        network_interfaces=[_nic(one) for one in nics],
        chassis=_chassis(chassis[0]) if chassis else None,
        bios=Bios(firmware_version=_text(system, "BiosVersion")) if _text(system, "BiosVersion") else None,
        product=Product(
            name=_text(system, "Model"),
            vendor=_text(system, "Manufacturer"),
            model=_text(system, "Model"),
            serial_number=_text(system, "SerialNumber"),
            status=_status(system),
        ),
        bmc=_bmc(managers[0]) if managers else None,
    )


async def _disks(get: Get, system: Document) -> list[BlockDevice]:
    """Drives of storage controllers; of services that have only the older form, what that tells."""
    found: list[BlockDevice] = []
    links: list[str] = []
    for storage in await _all(get, _link(system, "Storage")):
        links += _links(storage.get("Drives"))
    found += [_drive(drive) for drive in await _each(get, links)]
    if found:
        return found
    for simple in await _all(get, _link(system, "SimpleStorage")):
        devices = simple.get("Devices")
        found += (
            [_simple(device) for device in devices if isinstance(device, dict)] if isinstance(devices, list) else []
        )
    return found[:MAX_PARTS]


async def _all(get: Get, collection: str) -> list[Document]:
    """The members of a collection, as far as they can be read."""
    if not collection:
        return []
    try:
        members = (await get(collection)).get("Members")
    except BmcError:
        return []
    return await _each(get, _links(members))


async def _each(get: Get, paths: Iterable[str]) -> list[Document]:
    found = []
    for path in list(paths)[:MAX_PARTS]:
        try:
            found.append(await get(path))
        except BmcError:
            continue
    return [one for one in found if _state(one) != "Absent"]


def _cpu(system: Document, processors: Sequence[Document]) -> Cpu:
    sockets = [
        Socket(
            slot=_text(one, "Socket") or _text(one, "Id"),
            vendor=_text(one, "Manufacturer"),
            model=_text(one, "Model"),
            cores=_number(one, "TotalCores"),
            threads=_number(one, "TotalThreads"),
            clock_speed_mhz=_number(one, "MaxSpeedMHz"),
            firmware_version=_text(one, "FirmwareVersion"),
        )
        for one in processors
    ]
    summary = _part(system, "ProcessorSummary")
    return Cpu(
        total_cores=sum(one.cores for one in sockets) or _number(summary, "CoreCount"),
        total_threads=sum(one.threads for one in sockets) or _number(summary, "LogicalProcessorCount"),
        sockets=sockets,
    )


def _memory(system: Document, modules: Sequence[Document]) -> Memory:
    found = [
        MemoryModule(
            slot=_text(one, "DeviceLocator") or _text(one, "Id"),
            vendor=_text(one, "Manufacturer"),
            serial_number=_text(one, "SerialNumber"),
            part_number=_text(one, "PartNumber"),
            size_bytes=_number(one, "CapacityMiB") * _MIB,
            speed_mhz=_number(one, "OperatingSpeedMhz"),
            form_factor=_text(one, "BaseModuleType") or _text(one, "MemoryDeviceType"),
            firmware_version=_text(one, "FirmwareRevision"),
        )
        for one in modules
    ]
    total = int(_amount(_part(system, "MemorySummary"), "TotalSystemMemoryGiB") * _GIB)
    return Memory(total_bytes=total or sum(one.size_bytes for one in found), modules=found)


def _drive(drive: Document) -> BlockDevice:
    return BlockDevice(
        name=_text(drive, "Id") or _text(drive, "Name"),
        controller_type=_text(drive, "Protocol"),
        drive_type=_text(drive, "MediaType"),
        vendor=_text(drive, "Manufacturer"),
        model=_text(drive, "Model"),
        serial_number=_text(drive, "SerialNumber"),
        wwn=_wwn(drive),
        size_bytes=_number(drive, "CapacityBytes"),
        physical_block_size_bytes=_number(drive, "BlockSizeBytes"),
        smart_status="FAILING" if drive.get("FailurePredicted") is True else "",
        firmware_version=_text(drive, "Revision"),
        status=_status(drive),
    )


def _wwn(drive: Document) -> str:
    identifiers = drive.get("Identifiers")
    for one in identifiers if isinstance(identifiers, list) else ():
        if isinstance(one, dict) and one.get("DurableNameFormat") in ("NAA", "EUI", "NGUID"):
            return _text(one, "DurableName")
    return ""


def _simple(device: Document) -> BlockDevice:
    return BlockDevice(
        name=_text(device, "Name"),
        vendor=_text(device, "Manufacturer"),
        model=_text(device, "Model"),
        size_bytes=_number(device, "CapacityBytes"),
        status=_status(device),
    )


def _nic(nic: Document) -> NetworkInterface:
    port = NetworkPort(
        port_id=_text(nic, "Id"),
        mac=(_text(nic, "PermanentMACAddress") or _text(nic, "MACAddress")).lower(),
        speed_mbps=_number(nic, "SpeedMbps"),
        mtu=_number(nic, "MTUSize"),
        link_status=_text(nic, "LinkStatus"),
    )
    return NetworkInterface(name=_text(nic, "Name") or _text(nic, "Id"), ports=[port])


def _chassis(chassis: Document) -> Chassis:
    return Chassis(
        vendor=_text(chassis, "Manufacturer"),
        model=_text(chassis, "Model"),
        serial_number=_text(chassis, "SerialNumber"),
    )


def _bmc(manager: Document) -> Bmc:
    return Bmc(
        vendor=_text(manager, "Manufacturer"),
        model=_text(manager, "Model"),
        serial_number=_text(manager, "SerialNumber"),
        firmware_version=_text(manager, "FirmwareVersion"),
        status=_status(manager),
    )


def _status(document: Document) -> ComponentStatus | None:
    status = _part(document, "Status")
    health, state = _text(status, "Health"), _text(status, "State")
    return ComponentStatus(health=health, state=state) if health or state else None


def _state(document: Document) -> str:
    return _text(_part(document, "Status"), "State")


def _part(document: Document, name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _link(document: Document, name: str) -> str:
    return _text(_part(document, name), "@odata.id")


def _links(entries: Any) -> list[str]:
    found = entries if isinstance(entries, list) else []
    return [one["@odata.id"] for one in found if isinstance(one, dict) and isinstance(one.get("@odata.id"), str)]


def _text(document: Document, name: str) -> str:
    value = document.get(name)
    return value.strip()[:256] if isinstance(value, str) else ""


def _amount(document: Document, name: str) -> float:
    value = document.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**53:
        return 0.0
    return float(value)


def _number(document: Document, name: str) -> int:
    return int(_amount(document, name))
