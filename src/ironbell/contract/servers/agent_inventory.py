"""The inventory that an agent reported of its machine (an annotation of the Hardware), in the form of BMCs' reports.

Upstream's agents and ours are read alike; fields that only ours reports (exact sizes, drivers,
neighbours) are used where they are set. PCI devices and the features of processors stay in the annotation: they are
long, and nothing is chosen by them.

Source: tinkerbell/tinkerbell: pkg/data (attributes of an agent, sizes such as `64GB` in units of 1024);
api/v1alpha1/tinkerbell/attributes.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from ironbell.api.tinkerbell.inventory import (
    Baseboard,
    Bios,
    BlockDevice,
    Chassis,
    Cpu,
    Inventory,
    Memory,
    Neighbour,
    NetworkInterface,
    NetworkPort,
    Product,
    Socket,
)

METHOD: Final = "agent"
_SIZE: Final = re.compile(r"(\d{1,12}) ?(B|KB|MB|GB|TB|PB|EB)")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_SPEED: Final = re.compile(r"(\d{1,9}) ?([MG])b(?:it)?/s")
_MAX_INT32: Final = 2**31 - 1
_MAX_INT64: Final = 2**63 - 1


class _Processor(msgspec.Struct, frozen=True):
    id: int = 0
    cores: int = 0
    threads: int = 0
    vendor: str = ""
    model: str = ""


class _Cpu(msgspec.Struct, frozen=True, rename="camel"):
    total_cores: int = 0
    total_threads: int = 0
    processors: list[_Processor] = []


class _Memory(msgspec.Struct, frozen=True, rename="camel"):
    total: str = ""
    usable: str = ""
    total_bytes: int = 0
    usable_bytes: int = 0


class _Block(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    controller_type: str = ""
    drive_type: str = ""
    size: str = ""
    size_bytes: int = 0
    physical_block_size: str = ""
    vendor: str = ""
    model: str = ""
    wwn: str = ""
    serial_number: str = ""


class _Neighbour(msgspec.Struct, frozen=True, rename="camel"):
    chassis_id: str = msgspec.field(default="", name="chassisID")
    port_id: str = msgspec.field(default="", name="portID")
    port_description: str = ""
    system_name: str = ""
    management_address: str = ""
    vlan_id: int = msgspec.field(default=0, name="vlanID")


class _Network(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    mac: str = ""
    speed: str = ""
    driver: str = ""
    lldp_neighbours: list[_Neighbour] = []


class _Chassis(msgspec.Struct, frozen=True):
    serial: str = ""
    vendor: str = ""


class _Bios(msgspec.Struct, frozen=True, rename="camel"):
    vendor: str = ""
    version: str = ""
    release_date: str = ""


class _Baseboard(msgspec.Struct, frozen=True, rename="camel"):
    vendor: str = ""
    product: str = ""
    serial_number: str = ""


class _Product(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    vendor: str = ""
    serial_number: str = ""
    uuid: str = ""


class _Attributes(msgspec.Struct, frozen=True, rename="camel"):
    cpu: _Cpu = _Cpu()
    memory: _Memory = _Memory()
    chassis: _Chassis = _Chassis()
    bios: _Bios = _Bios()
    baseboard: _Baseboard = _Baseboard()
    product: _Product = _Product()
    block_devices: list[_Block] = []
    network_interfaces: list[_Network] = []


@lru_cache(maxsize=4096)
def in_band(text: str) -> Inventory | None:
    """The report of this text; None if there is none, or it cannot be read.

    Remembered by the text: inventories change seldom and are read often.
    """
    if not text:
        return None
    try:
        report = msgspec.json.decode(text, type=_Attributes)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    product, bios, board, chassis = report.product, report.bios, report.baseboard, report.chassis
    return Inventory(
        collection_method=METHOD,
        cpu=_cpu(report.cpu),
        memory=Memory(
            total_bytes=_bytes(report.memory.total_bytes, report.memory.total),
            usable_bytes=_bytes(report.memory.usable_bytes, report.memory.usable),
        ),
        block_devices=[_disk(device) for device in report.block_devices],
        network_interfaces=[_nic(interface) for interface in report.network_interfaces],
        chassis=Chassis(vendor=chassis.vendor.strip(), serial_number=chassis.serial.strip()),
        baseboard=Baseboard(vendor=board.vendor, model=board.product, serial_number=board.serial_number),
        bios=Bios(vendor=bios.vendor, firmware_version=bios.version, release_date=bios.release_date),
        product=Product(
            name=product.name.strip(),
            vendor=product.vendor.strip(),
            serial_number=product.serial_number.strip(),
            uuid=product.uuid,
        ),
    )


def size_of(text: str) -> int:
    """Bytes of a size as agents write it; 0 for anything else."""
    match = _SIZE.fullmatch(text.strip())
    return int(match[1]) * 1024 ** _UNITS.index(match[2]) if match else 0


def _bytes(exact: int, text: str) -> int:
    return max(0, min(exact or size_of(text), _MAX_INT64))


def _small(number: int) -> int:
    return max(0, min(number, _MAX_INT32))


def _cpu(cpu: _Cpu) -> Cpu:
    sockets = [
        Socket(
            slot=str(entry.id),
            vendor=entry.vendor,
            model=entry.model,
            cores=_small(entry.cores),
            threads=_small(entry.threads),
        )
        for entry in cpu.processors
    ]
    return Cpu(total_cores=_small(cpu.total_cores), total_threads=_small(cpu.total_threads), sockets=sockets)


def _disk(disk: _Block) -> BlockDevice:
    return BlockDevice(
        name=disk.name,
        controller_type=disk.controller_type,
        drive_type=disk.drive_type,
        vendor=disk.vendor,
        model=disk.model,
        serial_number=disk.serial_number,
        wwn=disk.wwn,
        size_bytes=_bytes(disk.size_bytes, disk.size),
        physical_block_size_bytes=_bytes(0, disk.physical_block_size),
    )


def _nic(network: _Network) -> NetworkInterface:
    reported = [
        Neighbour(
            chassis_id=entry.chassis_id,
            port_id=entry.port_id,
            port_description=entry.port_description,
            system_name=entry.system_name,
            management_address=entry.management_address,
            vlan_id=_small(entry.vlan_id),
        )
        for entry in network.lldp_neighbours
    ]
    port = NetworkPort(
        port_id=network.name,
        mac=network.mac.lower(),
        speed_mbps=_small(_speed_mbps(network.speed)),
        neighbours=reported,
    )
    return NetworkInterface(name=network.name, driver=network.driver, ports=[port])


def _speed_mbps(text: str) -> int:
    match = _SPEED.fullmatch(text.strip())
    return int(match[1]) * (1000 if match[2] == "G" else 1) if match else 0
