"""The lab file: the virtual machines of a lab and their network.

    name: demo
    network:
      subnet: 192.168.77.0/24        # ours is the first address
      reachable: false               # whether this host has a route to it
    machines:
    - name: node-1
      kind: qemu                     # or namespace
      firmware: uefi                 # or bios
      memory: 1536                   # MiB
      cpus: 2
      disks: [{size: 4GiB}]

Everything but the names has a default; MAC, UUID, address and serial numbers follow from the names, so that the same
file always makes the same machines.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.textfile import TextFileError, read_text_file
from ironbell.base.wording import counted
from ironbell.codec import goyaml
from ironbell.lab.named import machine_named

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SIZE = re.compile(r"(\d+)\s*(|[KMGT]i?B?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
FIRST_MACHINE_ADDRESS = 10
MIN_MEMORY_MIB = 256


class LabFileError(IronbellError):
    """The lab file is wrong; the message names the field."""

    reason = "InvalidLabFile"
    retry = Retry.NEVER


class DiskDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One disk."""

    size: str = "4GiB"
    serial: str = ""
    bus: Literal["virtio", "nvme"] = "virtio"
    """Bus of the disk, which decides its name in the machine: /dev/vda and so on, or /dev/nvme0n1 and so on."""

    @property
    def bytes(self) -> int:
        return parse_size(self.size)


class BmcDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials of a machine's BMC; without a password a random one is created and kept in the lab's folder."""

    user: str = "admin"
    password: str = ""
    port: int = 0


class MachineDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One virtual machine."""

    name: str
    kind: Literal["qemu", "namespace"] = "qemu"
    """`namespace`: made of Linux namespaces, for fast machines on a host without KVM."""
    firmware: Literal["uefi", "bios"] = "uefi"
    memory: int = 1536
    """MiB."""
    cpus: int = 2
    mac: str = ""
    address: str = ""
    uuid: str = ""
    disks: tuple[DiskDescription, ...] = (DiskDescription(),)
    bmc: BmcDescription = BmcDescription()


class NetworkDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machines' network; nothing leaves it."""

    subnet: str = "192.168.77.0/24"
    reachable: bool = False
    """Whether this host can reach it, by a route: for clusters on its machines, whose API the controllers use."""

    @property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.subnet)

    @property
    def gateway(self) -> str:
        """This host's address in it."""
        return str(self.network[1])


class LabDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole lab, with all defaults filled in by `parse`."""

    name: str = "lab"
    network: NetworkDescription = NetworkDescription()
    machines: tuple[MachineDescription, ...] = ()

    def machine(self, name: str) -> MachineDescription:
        """The machine of that name.

        Raises:
            LabFileError: the lab has no such machine.
        """
        return machine_named(self.machines, name, LabFileError)


def read(path: Path) -> LabDescription:
    """Read a lab file.

    Raises:
        LabFileError: the file cannot be read, or is not valid.
    """
    try:
        document = goyaml.load(read_text_file(path, purpose="a lab, as `ironbell lab init` writes one"))
        if not isinstance(document, dict):
            raise LabFileError("must be a mapping, as `ironbell lab init` writes one")
        return parse(document)
    except TextFileError as error:
        raise LabFileError(str(error)) from error
    except IronbellError as error:
        raise LabFileError(f"{path}: {error}") from error


def parse(document: Any) -> LabDescription:
    """Check a lab file's content and fill in the defaults.

    Raises:
        LabFileError: see `read`.
    """
    try:
        lab = msgspec.convert(document, LabDescription)
    except msgspec.ValidationError as error:
        raise LabFileError(str(error)) from error
    if not _NAME.fullmatch(lab.name):
        raise LabFileError(f"name: {lab.name!r} must be lower-case letters, digits and dashes")
    try:
        network = lab.network.network
    except ValueError as error:
        raise LabFileError(f"network.subnet: {error}") from error
    if not lab.machines:
        raise LabFileError("machines: a lab needs at least one machine")
    if network.num_addresses < len(lab.machines) + FIRST_MACHINE_ADDRESS + 1:
        raise LabFileError(f"network.subnet: {network} is too small for {counted(len(lab.machines), 'machine')}")
    machines = tuple(_completed(lab, place, machine) for place, machine in enumerate(lab.machines))
    for field in ("name", "mac", "address", "uuid"):
        _unique(field, [getattr(machine, field) for machine in machines])
    return msgspec.structs.replace(lab, machines=machines)


def parse_size(text: str) -> int:
    """Bytes of a size such as `4GiB`, `512M` or `1000000`; all units are powers of 1024.

    Raises:
        LabFileError: the text is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or not int(match.group(1)):
        raise LabFileError(f"size: {text!r} is not a valid size; write it like 4GiB")
    return int(match.group(1)) * _UNITS[match.group(2)[:1].lower()]


def _completed(lab: LabDescription, place: int, machine: MachineDescription) -> MachineDescription:
    where = f"machines[{place}]"
    if not _NAME.fullmatch(machine.name):
        raise LabFileError(f"{where}.name: {machine.name!r} must be lower-case letters, digits and dashes")
    if machine.memory < MIN_MEMORY_MIB:
        raise LabFileError(f"{where}.memory: {machine.memory} MiB is less than {MIN_MEMORY_MIB}")
    if not 1 <= machine.cpus <= 64:
        raise LabFileError(f"{where}.cpus must be between 1 and 64")
    if machine.mac and not _MAC.fullmatch(machine.mac):
        raise LabFileError(f"{where}.mac: {machine.mac!r} must be six lower-case pairs with colons")
    digest = hashlib.sha256(f"{lab.name}/{machine.name}".encode()).hexdigest()
    network = lab.network.network
    address = machine.address or str(network[FIRST_MACHINE_ADDRESS + place])
    try:
        inside = ipaddress.IPv4Address(address) in network
    except ValueError as error:
        raise LabFileError(f"{where}.address: {error}") from error
    if not inside:
        raise LabFileError(f"{where}.address: {address} is not in {network}")
    for disk in machine.disks:
        parse_size(disk.size)
    disks = tuple(
        msgspec.structs.replace(disk, serial=disk.serial or f"{digest[20:30]}{number}".upper())
        for number, disk in enumerate(machine.disks)
    )
    return msgspec.structs.replace(
        machine,
        mac=machine.mac or f"52:54:00:{digest[:2]}:{digest[2:4]}:{digest[4:6]}",
        address=address,
        uuid=machine.uuid or f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}",
        disks=disks,
    )


def _unique(field: str, values: list[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise LabFileError(f"machines: {field} {value!r} is used twice")
