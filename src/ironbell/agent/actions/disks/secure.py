"""Have a disk erase itself: NVMe format or sanitize, ATA security erase. What the device cannot is not pretended.

An NVMe namespace is formatted with a secure erase where its controller can, which is over in seconds; a controller that
can only sanitize is told to and waited for. Neither is done where it would reach another namespace. An ATA disk gets a
password for the time of the erase, since the command needs one; a disk that firmware has frozen says so.

Source: NVM Express Base Specification 2.0, sections 5.14 (Format NVM), 5.24 (Sanitize), 5.16.1.25 (Sanitize Status);
ATA/ATAPI Command Set 3, section 4.18 (Security feature set); nvme-format(1), nvme-sanitize(1), hdparm(8).
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, kernel
from ironbell.agent.actions.disks.devices import Device
from ironbell.agent.actions.streams.meter import Meter

_NVME: Final = re.compile(r"(nvme\d+)(?:c\d+)?n(\d+)")
_WHOLE_SCSI: Final = re.compile(r"sd[a-z]+")
_FORMAT_SUPPORTED: Final = 1 << 1
"""Of OACS."""
_FORMATS_ALL, _ERASES_ALL, _CRYPTO_FORMAT = 1 << 0, 1 << 1, 1 << 2
"""Of FNA: whether a format, or its secure erase, reaches every namespace; whether it can be cryptographic."""
_CRYPTO_SANITIZE, _BLOCK_SANITIZE = 1 << 0, 1 << 1
"""Of SANICAP."""
_SANITIZED: Final = {1, 4}
"""Of the sanitize status: completed, also with forced deallocation."""
_SANITIZING: Final = 2
_STATUS: Final = struct.Struct("<HH")
"""Progress and status, at the beginning of the log page."""
_LOOK_S: Final = 2.0
_PASSWORD: Final = "ironbell"  # noqa: S105 - for the time of the erase only; the erase takes it off
_SECURITY: Final = ("hdparm", "--user-master", "u")
_MINUTES: Final = re.compile(r"(\d+)min for SECURITY ERASE UNIT")


@dataclass(frozen=True, slots=True)
class Ata:
    """What an ATA disk says of its security features."""

    supported: bool
    frozen: bool
    locked: bool
    enhanced: bool
    minutes: int | None


def erase(context: Context, device: Device) -> str:
    """Erase the disk by its own means; what was done, or nothing where it has none.

    Raises:
        ActionError: it has them, and they fail or are shut.
    """
    return erase_nvme(context, device) or erase_ata(context, device)


def erase_nvme(context: Context, device: Device) -> str:
    """Format or sanitize an NVMe namespace; what was done, or nothing for another disk or one that cannot.

    Raises:
        ActionError: it can, and fails.
    """
    match = _NVME.fullmatch(device.kernel_name)
    if match is None:
        return ""
    _unused(device)
    return _nvme(context, device, f"/dev/{match[1]}")


def erase_ata(context: Context, device: Device) -> str:
    """Have an ATA disk erase itself; what was done, or nothing for another disk or one that cannot.

    Raises:
        ActionError: it can, and fails, or firmware has frozen it.
    """
    if not _WHOLE_SCSI.fullmatch(device.kernel_name):
        return ""
    ata = parse_security(_said(["hdparm", "-I", device.path], check=False))
    if ata is None or not ata.supported:
        return ""
    _unused(device)
    return _ata(context, device, ata)


def _unused(device: Device) -> None:
    """Nobody has it open; these commands go past the kernel's own exclusion."""
    os.close(devices.open_exclusively(device))


def _nvme(context: Context, device: Device, controller: str) -> str:
    known = _json(["nvme", "id-ctrl", controller, "--output-format=json"])
    alone, fna = not _other_namespaces(device), _number(known, "fna")
    if _number(known, "oacs") & _FORMAT_SUPPORTED and (alone or not fna & (_FORMATS_ALL | _ERASES_ALL)):
        crypto = fna & _CRYPTO_FORMAT
        kind = 2 if crypto else 1
        _said(["nvme", "format", device.path, f"--ses={kind}", "--force"])
        return f"NVMe format with {'cryptographic' if crypto else 'user data'} erase"
    capabilities = _number(known, "sanicap")
    if alone and capabilities & (_CRYPTO_SANITIZE | _BLOCK_SANITIZE):
        crypto = capabilities & _CRYPTO_SANITIZE
        _said(["nvme", "sanitize", controller, f"--sanact={4 if crypto else 2}"])
        _wait_for_sanitize(context, device, controller)
        return f"NVMe sanitize ({'cryptographic' if crypto else 'block'} erase)"
    return ""


def _other_namespaces(device: Device) -> bool:
    """Whether the controller has another namespace, which may hold what nobody wants erased."""
    own = _NVME.fullmatch(device.kernel_name)
    found = {(match[1], match[2]) for name in devices.disks() if (match := _NVME.fullmatch(name)) is not None}
    return own is not None and any(one[0] == own[1] and one[1] != own[2] for one in found)


def _wait_for_sanitize(context: Context, device: Device, controller: str) -> None:
    meter = Meter(context, what="sanitize")
    while True:
        log = _output(["nvme", "sanitize-log", controller, "--output-format=binary"])
        if len(log) < _STATUS.size:
            raise ActionError(f"{device}: nvme says nothing of the sanitize that was begun")
        progress, status = _STATUS.unpack_from(log)
        status &= 7
        if status in _SANITIZED:
            return
        if status != _SANITIZING:
            raise ActionError(f"{device}: sanitize ended with status {status}; use WIPE_METHOD=zero")
        share = progress / 65536
        meter.update(int(device.size * share), share=share, total=device.size)
        time.sleep(_LOOK_S)


def parse_security(text: str) -> Ata | None:
    """The section `Security` of what hdparm says; None where there is none."""
    _, heading, rest = text.partition("\nSecurity:")
    if not heading:
        return None
    lines = [line.split() for line in re.split(r"\n(?=\S)", rest)[0].splitlines()]

    def says(*words: str) -> bool:
        return list(words) in lines

    minutes = _MINUTES.search(rest)
    return Ata(
        supported=says("supported"),
        frozen=says("frozen"),
        locked=says("locked"),
        enhanced=says("supported:", "enhanced", "erase"),
        minutes=int(minutes[1]) if minutes else None,
    )


def _ata(context: Context, device: Device, ata: Ata) -> str:
    if ata.frozen:
        raise ActionError(
            f"{device}: firmware has frozen its security features; allow them in the firmware's settings, or use "
            "WIPE_METHOD=zero"
        )
    if ata.locked:
        # an erase that was cut off leaves the password behind
        _said([*_SECURITY, "--security-unlock", _PASSWORD, device.path], fails=f"{device} is locked by a password")
    if ata.minutes is not None:
        context.say(f"{device} says that erasing takes {ata.minutes} min")
    _said([*_SECURITY, "--security-set-pass", _PASSWORD, device.path])
    verb = "--security-erase-enhanced" if ata.enhanced else "--security-erase"
    try:
        _said([*_SECURITY, verb, _PASSWORD, device.path])
    except ActionError:
        with contextlib.suppress(ActionError):
            _said([*_SECURITY, "--security-disable", _PASSWORD, device.path])
        raise
    return f"ATA security erase{' (enhanced)' if ata.enhanced else ''}"


def _json(command: list[str]) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_said(command), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ActionError(f"{' '.join(command[:2])} gave no JSON: {error}") from error


def _number(known: dict[str, Any], name: str) -> int:
    value = known.get(name, 0)
    return value if isinstance(value, int) else 0


def _said(command: list[str], *, check: bool = True, fails: str = "") -> str:
    return _output(command, check=check, fails=fails).decode("utf-8", "replace")


def _output(command: list[str], *, check: bool = True, fails: str = "") -> bytes:
    try:
        done = subprocess.run(command, preexec_fn=kernel.die_with_parent, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise ActionError(f"this in-memory OS has no {command[0]}") from error
    if check and done.returncode:
        said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        last = next((line for line in reversed(said) if line.strip()), "")
        what = fails or f"{' '.join(command[:2])} failed with status {done.returncode}"
        raise ActionError(f"{what}: {last.strip()}")
    return done.stdout
