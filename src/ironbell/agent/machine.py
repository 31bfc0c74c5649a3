"""The identity of this machine: UUID, MAC addresses, disk serials; and whether an action is meant for it.

An action may carry the Hardware's description of its machine (`IRONBELL_MACHINE_UUID`, `IRONBELL_MACHINE_MAC`,
`IRONBELL_DISK_SERIAL`; several values separated by commas, one must match). A mismatch rejects the action before
anything is written: a wrong address in one Hardware must not erase another machine.

It may also carry the disks to keep (`IRONBELL_KEEP_DISKS`, serial numbers or WWNs) and the devices that the whole
Workflow writes to (`IRONBELL_WORKFLOW_DISKS`), so that the first action already rejects what a later one must not do.

Source: SMBIOS (DMTF DSP0134) section 7.2.1 for the two byte orders of the UUID; Linux: Documentation/ABI, sysfs.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbell.codec import diskidentity
from ironbell.codec.diskidentity import DiskIdentity

UUID_VARIABLE = "IRONBELL_MACHINE_UUID"
MAC_VARIABLE = "IRONBELL_MACHINE_MAC"
SERIAL_VARIABLE = "IRONBELL_DISK_SERIAL"
KEEP_VARIABLE = "IRONBELL_KEEP_DISKS"
TARGETS_VARIABLE = "IRONBELL_WORKFLOW_DISKS"

SYS = Path("/sys")

_SIOCGIFHWADDR = 0x8927
_ARPHRD_ETHER = 1


@dataclass(frozen=True)
class Machine:
    """The identity that the running system reports."""

    uuid: str = ""
    macs: frozenset[str] = frozenset()


def read_text(path: Path) -> str:
    """A sysfs file without surrounding space; empty where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError:
        return ""


def detect(sys: Path = SYS) -> Machine:
    """Read this machine's identity."""
    interfaces = sys / "class" / "net"
    names = sorted(path.name for path in interfaces.iterdir()) if interfaces.is_dir() else []
    macs = {read_text(interfaces / name / "address").lower() for name in names}
    if sys == SYS:
        # A machine made of namespaces may see another network's sysfs, but always its own sockets.
        macs |= _own_macs()
    return Machine(
        uuid=read_text(sys / "class" / "dmi" / "id" / "product_uuid").lower(),
        macs=frozenset(macs - {"", "00:00:00:00:00:00"}),
    )


def _own_macs() -> set[str]:
    """The hardware addresses of this network namespace's interfaces."""
    macs = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(control.fileno(), _SIOCGIFHWADDR, struct.pack("16s240x", name.encode()))
                family, address = struct.unpack_from("=H6s", answer, 16)
                if family == _ARPHRD_ETHER:
                    macs.add(address.hex(":"))
    return macs


def disk_serial(name: str, sys: Path = SYS) -> str:
    """The serial number of a whole disk by its kernel name; empty where the kernel knows none."""
    block = sys / "class" / "block" / name
    for candidate in ("serial", "device/serial"):
        if text := read_text(block / candidate):
            return text
    # SCSI: page 0x80, four bytes of header (SPC-4, section 7.8.15).
    try:
        return (block / "device" / "vpd_pg80").read_bytes()[4:].decode("ascii", "replace").strip("\0 ")
    except OSError:
        return ""


def disk_wwn(name: str, sys: Path = SYS) -> str:
    """The World Wide Name of a whole disk by its kernel name; empty where the kernel knows none."""
    block = sys / "class" / "block" / name
    return read_text(block / "device" / "wwid") or read_text(block / "wwid")


def disk_identity(name: str, sys: Path = SYS) -> DiskIdentity:
    """The serial number and WWN of a whole disk."""
    return DiskIdentity(disk_serial(name, sys), disk_wwn(name, sys))


def kept_disks(expected: Mapping[str, str]) -> list[str]:
    """Serial numbers and WWNs of the disks that nothing may be written to."""
    return diskidentity.names(expected.get(KEEP_VARIABLE, ""))


def kept_objection(expected: Mapping[str, str], *, disk: str, identity: DiskIdentity) -> str | None:
    """The reason why nothing may be written to a disk, because it is kept; else None."""
    if not identity.is_any_of(kept_disks(expected)):
        return None
    return (
        f"{disk} (serial number {identity.serial or 'unknown'}) must be kept: rejected; correct the template, or the "
        "annotation ironbell.dev/keep-disks"
    )


def keep_mismatch(expected: Mapping[str, str], disks: Iterable[DiskIdentity]) -> str | None:
    """The reason why a disk to keep cannot be identified, or None: a name that matches no disk may be misspelt."""
    known = list(disks)
    missing = diskidentity.unmatched(kept_disks(expected), known)
    if not missing:
        return None
    serials = _listed(disk.serial or disk.wwn for disk in known if disk.serial or disk.wwn)
    return (
        f"annotation ironbell.dev/keep-disks names {', '.join(missing)}, which no disk of this machine has as serial "
        f"number or WWN (it has {serials}): rejected; correct the annotation"
    )


def uuid_forms(text: str) -> frozenset[str]:
    """A UUID as written, and with its first three fields in the other byte order: firmware disagrees about it."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return frozenset({text.strip().lower()})
    return frozenset({str(value), str(uuid.UUID(bytes_le=value.bytes))})


def _values(text: str) -> list[str]:
    return [part.strip().lower() for part in text.split(",") if part.strip()]


def mismatch(expected: Mapping[str, str], machine: Machine) -> str | None:
    """The reason why an action is not for this machine, or None."""
    uuids = _values(expected.get(UUID_VARIABLE, ""))
    if uuids and not any(machine.uuid in uuid_forms(value) for value in uuids):
        return (
            f"this machine's UUID is {machine.uuid or 'unknown'}, the Hardware names {', '.join(uuids)}: "
            "rejected; correct the Hardware"
        )
    macs = [value.replace("-", ":") for value in _values(expected.get(MAC_VARIABLE, ""))]
    if macs and not machine.macs.intersection(macs):
        return (
            f"this machine's MAC addresses are {_listed(machine.macs)}, the Hardware names {', '.join(macs)}: "
            "rejected; correct the Hardware"
        )
    return None


def serial_mismatch(expected: Mapping[str, str], *, disk: str, serial: str) -> str | None:
    """The reason why a disk is not the one in the Hardware, or None."""
    serials = _values(expected.get(SERIAL_VARIABLE, ""))
    if not serials or serial.lower() in serials:
        return None
    return (
        f"the serial number of {disk} is {serial or 'unknown'}, the Hardware names {', '.join(serials)}: "
        "rejected; correct the Hardware or DEST_DISK"
    )


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values)) or "unknown"
