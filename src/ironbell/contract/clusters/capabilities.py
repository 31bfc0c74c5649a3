"""Capabilities of a server in comparable numbers: one reading of its inventory, from any source.

The agent's report is taken first, part by part, since it saw the machine from inside; what it lacks comes from the
BMC's (`status.attributes.outOfBand`). What nobody reported is None, which satisfies no requirement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.inventory import Inventory, Neighbour, NetworkPort
from ironbell.api.tinkerbell.names import ANNOTATION_AGENT_ATTRIBUTES
from ironbell.contract.servers.agent_inventory import in_band
from ironbell.contract.servers.directory import normal_mac

ARCHITECTURES: Final = {"": "amd64", "x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
"""Architectures as Hardware and firmware name them, to Kubernetes' names."""
_FILLERS: Final = frozenset(
    {
        "to be filled by o.e.m.",
        "to be filled by o.e.m",
        "default string",
        "not specified",
        "not applicable",
        "system manufacturer",
        "system product name",
        "system serial number",
        "unknown",
        "none",
        "n/a",
        "0123456789",
    }
)
"""Placeholders of firmware for values that its manufacturer has not set."""


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk; its size in bytes."""

    name: str
    size: int
    serial: str = ""
    kind: str = ""
    wwn: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a server; bytes, and bits per second."""

    architecture: str | None = None
    vendor: str | None = None
    model: str | None = None
    serial: str | None = None
    cpu_cores: int | None = None
    memory: int | None = None
    disks: tuple[Disk, ...] | None = None
    nic_speed: int | None = None
    switch: str | None = None
    """Name of the switch at the other end of the network card that boots."""
    switch_port: str | None = None


def capabilities(hardware: Hardware) -> Capabilities:
    """Return the known capabilities of this server."""
    attributes = hardware.status.attributes
    mac = _boot_mac(hardware)
    inside = _of(in_band(hardware.metadata.annotations.get(ANNOTATION_AGENT_ATTRIBUTES, "")), mac)
    outside = _of(attributes.out_of_band if attributes is not None else None, mac)
    return Capabilities(
        architecture=_architecture(hardware),
        vendor=inside.vendor or outside.vendor,
        model=inside.model or outside.model,
        serial=inside.serial or outside.serial,
        cpu_cores=inside.cpu_cores or outside.cpu_cores,
        memory=inside.memory or outside.memory,
        disks=inside.disks if inside.disks is not None else outside.disks,
        nic_speed=inside.nic_speed or outside.nic_speed,
        switch=inside.switch,
        switch_port=inside.switch_port,
    )


def _architecture(hardware: Hardware) -> str | None:
    arches = {interface.dhcp.arch for interface in hardware.spec.interfaces if interface.dhcp is not None}
    names = {ARCHITECTURES.get(arch.lower(), arch.lower()) for arch in arches}
    return names.pop() if len(names) == 1 else None


def _boot_mac(hardware: Hardware) -> str:
    first = hardware.spec.interfaces[0].dhcp if hardware.spec.interfaces else None
    return normal_mac(first.mac) if first is not None else ""


def _of(inventory: Inventory | None, boot_mac: str) -> Capabilities:
    if inventory is None:
        return Capabilities()
    product, chassis, memory = inventory.product, inventory.chassis, inventory.memory
    ports = [port for card in inventory.network_interfaces for port in card.ports]
    switch = _switch(ports, boot_mac)
    return Capabilities(
        vendor=_known((product.vendor if product else "") or (chassis.vendor if chassis else "")),
        model=_known((product.name or product.model) if product else ""),
        serial=_known(product.serial_number if product else ""),
        cpu_cores=(inventory.cpu.total_cores if inventory.cpu else 0) or None,
        memory=(memory.total_bytes or memory.usable_bytes if memory else 0) or None,
        disks=_disks(inventory),
        nic_speed=max((port.speed_mbps * 10**6 for port in ports), default=0) or None,
        switch=(switch.system_name or switch.chassis_id) if switch else None,
        switch_port=(switch.port_id or switch.port_description) if switch else None,
    )


def _known(text: str) -> str | None:
    return None if text.strip().lower() in _FILLERS else text.strip() or None


def _disks(inventory: Inventory) -> tuple[Disk, ...] | None:
    if not inventory.block_devices:
        return None
    disks = (
        Disk(disk.name, disk.size_bytes, disk.serial_number, disk.drive_type, disk.wwn)
        for disk in inventory.block_devices
    )
    return tuple(sorted((disk for disk in disks if disk.size > 0), key=lambda disk: disk.name))


def _switch(ports: list[NetworkPort], boot_mac: str) -> Neighbour | None:
    if not boot_mac:
        return None
    heard = (port.neighbours for port in ports if normal_mac(port.mac) == boot_mac)
    return next((neighbour for neighbours in heard for neighbour in neighbours), None)
