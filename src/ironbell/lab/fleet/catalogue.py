"""The servers of a simulated fleet: models, racks, addresses. Pure; a number always gives the same server.

Each server has two addresses of the loopback network: one that it speaks to the site from, since metadata is given by
source address, and one that its BMC listens on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.servers.directory import DISK_SERIAL, MACHINE_UUID
from ironbell.lab import manifests
from ironbell.lab.manifests import Document

MOST: Final = 10_000
NETMASK: Final = "255.0.0.0"
_SERVERS: Final = int(IPv4Address("127.77.0.0"))
_BMCS: Final = int(IPv4Address("127.78.0.0"))
_GB: Final = 1000**3
_RACK_SIZE: Final = 20
_RACKS_IN_ROW: Final = 3


class FleetError(IronbellError):
    """A fleet cannot be simulated as requested."""

    reason = "CannotSimulate"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class DiskKind:
    """One disk of a model; its size in bytes."""

    device: str
    size: int
    media: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model of server. `cores` are those of each socket, `memory_gib` is the memory of the server."""

    vendor: str
    model: str
    cpu_vendor: str
    cpu_model: str
    sockets: int
    cores: int
    memory_gib: int
    disks: tuple[DiskKind, ...]
    nic_mbps: int
    bios: str


def _nvme(count: int, gigabytes: int) -> tuple[DiskKind, ...]:
    return tuple(DiskKind(f"/dev/nvme{number}n1", gigabytes * _GB, "SSD", "NVMe") for number in range(count))


MODELS: Final = (
    Model("Dell Inc.", "PowerEdge R650", "Intel", "Xeon Gold 6326", 2, 16, 256, _nvme(2, 960), 25_000, "1.12.1"),
    Model(
        "HPE",
        "ProLiant DL360 Gen10",
        "Intel",
        "Xeon Silver 4214",
        2,
        12,
        128,
        (
            *(DiskKind(f"/dev/sd{letter}", 480 * _GB, "SSD", "SATA") for letter in "ab"),
            *(DiskKind(f"/dev/sd{letter}", 4000 * _GB, "HDD", "SAS") for letter in "cd"),
        ),
        10_000,
        "U32 v2.80",
    ),
    Model("Supermicro", "SYS-510T-M", "Intel", "Xeon E-2388G", 1, 8, 32, _nvme(1, 512), 1_000, "1.7"),
    Model("Lenovo", "ThinkSystem SR645", "AMD", "EPYC 7443", 2, 24, 512, _nvme(4, 1920), 100_000, "D8E124H-3.10"),
)
"""Models, used in turn."""


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk of one server."""

    kind: DiskKind
    serial: str

    @property
    def device(self) -> str:
        return self.kind.device


@dataclass(frozen=True, slots=True)
class Server:
    """One server; numbers begin with 1."""

    number: int
    name: str
    model: Model
    rack: str
    row: str
    mac: str
    uuid: str
    serial: str
    address: str
    bmc_address: str
    disks: tuple[Disk, ...]


def fleet(count: int) -> tuple[Server, ...]:
    """The first servers, as many as `count`.

    Raises:
        FleetError: `count` is out of range.
    """
    if not 1 <= count <= MOST:
        raise FleetError(f"simulate: {count} servers; there can be 1 to {MOST}")
    return tuple(server(number) for number in range(1, count + 1))


def server(number: int) -> Server:
    """The server with this number."""
    name = f"sim-{number:04}"
    digest = hashlib.sha256(f"ironbell simulated server {number}".encode()).hexdigest()
    model = MODELS[(number - 1) % len(MODELS)]
    row = (number - 1) // (_RACK_SIZE * _RACKS_IN_ROW)
    serial = digest[40:50].upper()
    return Server(
        number=number,
        name=name,
        model=model,
        rack=f"rack-{row * _RACKS_IN_ROW + (number - 1) % _RACKS_IN_ROW + 1}",
        row=f"row-{row + 1}",
        mac=f"02:1b:{(number >> 24) & 255:02x}:{(number >> 16) & 255:02x}:{(number >> 8) & 255:02x}:{number & 255:02x}",
        uuid=f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}",
        serial=serial,
        address=str(IPv4Address(_SERVERS + number)),
        bmc_address=str(IPv4Address(_BMCS + number)),
        disks=tuple(Disk(kind, f"{serial}{place}") for place, kind in enumerate(model.disks)),
    )


def hardware(server: Server, namespace: str) -> Document:
    """The Hardware of a server."""
    return manifests.hardware(
        server.name,
        namespace,
        facility="simulation",
        mac=server.mac,
        uefi=True,
        ip={"address": server.address, "netmask": NETMASK, "gateway": "127.0.0.1"},
        disks=[disk.device for disk in server.disks],
        annotations={MACHINE_UUID: server.uuid, DISK_SERIAL: ",".join(disk.serial for disk in server.disks)},
        labels={"rack": server.rack, "row": server.row},
    )
