"""QEMU's command line for a machine: pure.

A guest's reset ends QEMU (`-action reboot=shutdown`), and the virtual BMC starts it again: the boot order of the next
start, with its one-time override, is then decided by the BMC, as on real hardware, for BIOS and UEFI alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry
from ironbell.lab.description import MachineDescription
from ironbell.lab.files import LabFolder

PROGRAM = "qemu-system-x86_64"
UEFI_CODE = ("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/edk2/x64/OVMF_CODE.4m.fd")
UEFI_VARIABLES = {
    "/usr/share/OVMF/OVMF_CODE_4M.fd": "/usr/share/OVMF/OVMF_VARS_4M.fd",
    "/usr/share/OVMF/OVMF_CODE.fd": "/usr/share/OVMF/OVMF_VARS.fd",
    "/usr/share/edk2/x64/OVMF_CODE.4m.fd": "/usr/share/edk2/x64/OVMF_VARS.4m.fd",
}


class NoFirmwareError(IronbellError):
    """UEFI firmware is not installed."""

    reason = "NoFirmware"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Boot:
    """Devices to try, in order: `pxe`, `hdd`."""

    order: tuple[str, ...] = ("hdd", "pxe")


def uefi_firmware() -> tuple[Path, Path]:
    """The firmware's code, and its initial variables.

    Raises:
        NoFirmwareError: none of the known files exists.
    """
    for code in UEFI_CODE:
        if Path(code).exists():
            return Path(code), Path(UEFI_VARIABLES[code])
    raise NoFirmwareError("no UEFI firmware found; install the package ovmf")


def command(
    machine: MachineDescription, folder: LabFolder, *, tap: str, boot: Boot, has_kvm: bool, uefi_code: Path | None
) -> list[str]:
    """The command line. `uefi_code` is needed for machines with UEFI."""
    words = [PROGRAM, "-name", machine.name, "-nodefaults", "-no-user-config", "-display", "none"]
    # without graphics a BIOS and its network boot show themselves on the serial line, as UEFI does anyhow
    graphics = "" if machine.firmware == "uefi" else ",graphics=off"
    words += ["-machine", f"q35,accel={'kvm' if has_kvm else 'tcg'}{graphics}", "-cpu", "host" if has_kvm else "max"]
    words += ["-smp", str(machine.cpus), "-m", str(machine.memory), "-rtc", "base=utc", "-vga", "std"]
    words += ["-uuid", machine.uuid, "-smbios", _smbios(machine), "-device", "virtio-rng-pci"]
    words += ["-action", "reboot=shutdown", "-qmp", f"unix:{folder.monitor(machine.name)},server=on,wait=off"]
    if machine.firmware == "uefi":
        words += ["-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={uefi_code}"]
        words += ["-drive", f"if=pflash,format=raw,unit=1,file={folder.variables(machine.name)}"]
    console, line = folder.console(machine.name), folder.serial(machine.name)
    words += ["-chardev", f"socket,id=serial0,path={line},server=on,wait=off,logfile={console},logappend=on"]
    words += ["-serial", "chardev:serial0"]
    return words + _network(machine, tap, boot) + _disks(machine, folder, boot)


def _smbios(machine: MachineDescription) -> str:
    return f"type=1,manufacturer=Ironbell,product=Virtual machine,serial={machine.uuid[-12:]},uuid={machine.uuid}"


def _network(machine: MachineDescription, tap: str, boot: Boot) -> list[str]:
    # UEFI boots over the network by itself; the card's own iPXE would only hide the firmware's
    rom = ",romfile=" if machine.firmware == "uefi" else ""
    device = f"virtio-net-pci,netdev=net0,mac={machine.mac}{rom}{_index(boot.order, 'pxe')}"
    return ["-netdev", f"tap,id=net0,ifname={tap},script=no,downscript=no", "-device", device]


def _disks(machine: MachineDescription, folder: LabFolder, boot: Boot) -> list[str]:
    words: list[str] = []
    for number, disk in enumerate(machine.disks):
        path = folder.disk(machine.name, number)
        words += [
            "-drive",
            f"if=none,id=disk{number},format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap,file={path}",
        ]
        index = _index(boot.order, "hdd") if number == 0 else ""
        device = "nvme" if disk.bus == "nvme" else "virtio-blk-pci"
        words += ["-device", f"{device},drive=disk{number},serial={disk.serial}{index}"]
    return words


def _index(order: Sequence[str], device: str) -> str:
    return f",bootindex={order.index(device) + 1}" if device in order else ""
