"""What a server has, in comparable numbers: one reading of its inventory, whoever reported it.

The agent's report (an annotation of the Hardware) is taken first, since it saw the machine from inside; what it lacks
comes from the BMC's (`status.attributes.outOfBand`). What nobody reported is None, which satisfies no requirement.

Source: tinkerbell/tinkerbell: pkg/data (attributes of an agent, sizes such as `64GB` in units of 1024);
api/v1alpha1/tinkerbell/attributes.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.inventory import Inventory
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES

_SIZE: Final = re.compile(r"(\d{1,12}) ?(B|KB|MB|GB|TB|PB|EB)")
_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_SPEED: Final = re.compile(r"(\d{1,9}) ?([MG])b(?:it)?/s")
ARCHITECTURES: Final = {"": "amd64", "x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""What Hardware and firmware call an architecture, to Kubernetes' name for it."""


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk; its size in bytes."""

    name: str
    size: int
    serial: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a server has; bytes, and bits per second."""

    architecture: str | None = None
    vendor: str | None = None
    model: str | None = None
    serial: str | None = None
    cpu_cores: int | None = None
    memory: int | None = None
    disks: tuple[Disk, ...] | None = None
    nic_speed: int | None = None


class _Cpu(msgspec.Struct, frozen=True, rename="camel"):
    total_cores: int = 0


class _Memory(msgspec.Struct, frozen=True):
    total: str = ""
    usable: str = ""


class _Block(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    size: str = ""
    drive_type: str = ""
    serial_number: str = ""


class _Network(msgspec.Struct, frozen=True):
    name: str = ""
    speed: str = ""


class _Product(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    vendor: str = ""
    serial_number: str = ""


class _AgentAttributes(msgspec.Struct, frozen=True, rename="camel"):
    cpu: _Cpu = _Cpu()
    memory: _Memory = _Memory()
    product: _Product = _Product()
    block_devices: list[_Block] = []
    network_interfaces: list[_Network] = []


def capabilities(hardware: Hardware) -> Capabilities:
    """What is known of this server."""
    inside = _from_agent(hardware.metadata.annotations.get(ANNOTATION_AGENT_ATTRIBUTES, ""))
    attributes = hardware.status.attributes
    outside = _from_bmc(attributes.out_of_band if attributes is not None else None)
    return Capabilities(
        architecture=_architecture(hardware),
        vendor=inside.vendor or outside.vendor,
        model=inside.model or outside.model,
        serial=inside.serial or outside.serial,
        cpu_cores=inside.cpu_cores or outside.cpu_cores,
        memory=inside.memory or outside.memory,
        disks=inside.disks if inside.disks is not None else outside.disks,
        nic_speed=inside.nic_speed or outside.nic_speed,
    )


def size_of(text: str) -> int:
    """Bytes of a size as agents write it; 0 for anything else."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * 1024 ** _UNITS.index(found[2]) if found else 0


def _architecture(hardware: Hardware) -> str | None:
    arches = {interface.dhcp.arch for interface in hardware.spec.interfaces if interface.dhcp is not None}
    names = {ARCHITECTURES.get(arch.lower(), arch.lower()) for arch in arches}
    return names.pop() if len(names) == 1 else None


@lru_cache(maxsize=4096)
def _from_agent(text: str) -> Capabilities:
    """Of the annotation's text, by which it is remembered: inventories change seldom and are read often."""
    if not text:
        return Capabilities()
    try:
        found = msgspec.json.decode(text, type=_AgentAttributes)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Capabilities()
    return Capabilities(
        vendor=found.product.vendor.strip() or None,
        model=found.product.name.strip() or None,
        serial=found.product.serial_number.strip() or None,
        cpu_cores=found.cpu.total_cores or None,
        memory=size_of(found.memory.total) or size_of(found.memory.usable) or None,
        disks=_disks(
            Disk(block.name, size_of(block.size), block.serial_number, block.drive_type)
            for block in found.block_devices
        )
        if found.block_devices
        else None,
        nic_speed=max((_speed(network.speed) for network in found.network_interfaces), default=0) or None,
    )


def _from_bmc(inventory: Inventory | None) -> Capabilities:
    if inventory is None:
        return Capabilities()
    product, chassis = inventory.product, inventory.chassis
    ports = (port for card in inventory.network_interfaces for port in card.ports)
    return Capabilities(
        vendor=((product.vendor if product else "") or (chassis.vendor if chassis else "")) or None,
        model=((product.name or product.model) if product else "") or None,
        serial=(product.serial_number if product else "") or None,
        cpu_cores=(inventory.cpu.total_cores if inventory.cpu else 0) or None,
        memory=(inventory.memory.total_bytes if inventory.memory else 0) or None,
        disks=_disks(
            Disk(device.name, device.size_bytes, device.serial_number, device.drive_type)
            for device in inventory.block_devices
        )
        if inventory.block_devices
        else None,
        nic_speed=max((port.speed_mbps * 10**6 for port in ports), default=0) or None,
    )


def _disks(disks: Iterable[Disk]) -> tuple[Disk, ...]:
    return tuple(sorted((disk for disk in disks if disk.size > 0), key=lambda disk: disk.name))


def _speed(text: str) -> int:
    found = _SPEED.fullmatch(text.strip())
    return int(found[1]) * (10**9 if found[2] == "G" else 10**6) if found else 0
