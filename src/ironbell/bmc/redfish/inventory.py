"""The inventory of a server, read from a Redfish service along its links.

Every service leaves something out. Missing values stay empty, and parts that cannot be read are left out. The number of
parts of a kind is limited, since every part takes a request.

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
"""Limit of parts of one kind."""
METHOD: Final = "redfish"
_GIB: Final = 1 << 30
_MIB: Final = 1 << 20


async def collect(get: Get, system_path: str) -> Inventory:
    """Read the inventory. Cancellation point.

    Raises:
        BmcError: the system itself cannot be read.
    """
    system = await get(system_path)
    links = _member(system, "Links")
    processors = await _all(get, _link(system, "Processors"))
    modules = await _all(get, _link(system, "Memory"))
    nics = await _all(get, _link(system, "EthernetInterfaces"))
    chassis = await _read(get, _links(links.get("Chassis")))
    managers = await _read(get, _links(links.get("ManagedBy")))
    return Inventory(
        collection_method=METHOD,
        cpu=_cpu(system, [processor for processor in processors if processor.get("ProcessorType") in (None, "CPU")]),
        memory=_memory(system, modules),
        block_devices=await _disks(get, system),
        network_interfaces=[_nic(nic) for nic in nics],
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
    """Drives of storage controllers; SimpleStorage of services that have only this older form."""
    disks: list[BlockDevice] = []
    links: list[str] = []
    for storage in await _all(get, _link(system, "Storage")):
        links += _links(storage.get("Drives"))
    disks += [_drive(drive) for drive in await _read(get, links)]
    if disks:
        return disks
    for simple in await _all(get, _link(system, "SimpleStorage")):
        devices = simple.get("Devices")
        disks += (
            [_simple(device) for device in devices if isinstance(device, dict)] if isinstance(devices, list) else []
        )
    return disks[:MAX_PARTS]


async def _all(get: Get, collection: str) -> list[Document]:
    """The members of a collection that can be read."""
    if not collection:
        return []
    try:
        members = (await get(collection)).get("Members")
    except BmcError:
        return []
    return await _read(get, _links(members))


async def _read(get: Get, paths: Iterable[str]) -> list[Document]:
    documents = []
    for path in list(paths)[:MAX_PARTS]:
        try:
            documents.append(await get(path))
        except BmcError:
            continue
    return [document for document in documents if _state(document) != "Absent"]


def _cpu(system: Document, processors: Sequence[Document]) -> Cpu:
    sockets = [
        Socket(
            slot=_text(processor, "Socket") or _text(processor, "Id"),
            vendor=_text(processor, "Manufacturer"),
            model=_text(processor, "Model"),
            cores=_number(processor, "TotalCores"),
            threads=_number(processor, "TotalThreads"),
            clock_speed_mhz=_number(processor, "MaxSpeedMHz"),
            firmware_version=_text(processor, "FirmwareVersion"),
        )
        for processor in processors
    ]
    summary = _member(system, "ProcessorSummary")
    return Cpu(
        total_cores=sum(socket.cores for socket in sockets) or _number(summary, "CoreCount"),
        total_threads=sum(socket.threads for socket in sockets) or _number(summary, "LogicalProcessorCount"),
        sockets=sockets,
    )


def _memory(system: Document, modules: Sequence[Document]) -> Memory:
    inventory = [
        MemoryModule(
            slot=_text(module, "DeviceLocator") or _text(module, "Id"),
            vendor=_text(module, "Manufacturer"),
            serial_number=_text(module, "SerialNumber"),
            part_number=_text(module, "PartNumber"),
            size_bytes=_number(module, "CapacityMiB") * _MIB,
            speed_mhz=_number(module, "OperatingSpeedMhz"),
            form_factor=_text(module, "BaseModuleType") or _text(module, "MemoryDeviceType"),
            firmware_version=_text(module, "FirmwareRevision"),
        )
        for module in modules
    ]
    total = int(_amount(_member(system, "MemorySummary"), "TotalSystemMemoryGiB") * _GIB)
    return Memory(total_bytes=total or sum(module.size_bytes for module in inventory), modules=inventory)


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
    for identifier in identifiers if isinstance(identifiers, list) else ():
        if isinstance(identifier, dict) and identifier.get("DurableNameFormat") in ("NAA", "EUI", "NGUID"):
            return _text(identifier, "DurableName")
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
    status = _member(document, "Status")
    health, state = _text(status, "Health"), _text(status, "State")
    return ComponentStatus(health=health, state=state) if health or state else None


def _state(document: Document) -> str:
    return _text(_member(document, "Status"), "State")


def _member(document: Document, name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _link(document: Document, name: str) -> str:
    return _text(_member(document, name), "@odata.id")


def _links(entries: Any) -> list[str]:
    links = (
        (entry.get("@odata.id") for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    )
    return [link for link in links if isinstance(link, str)]


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
