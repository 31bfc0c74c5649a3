"""Have a disk erase itself: NVMe format or sanitize, ATA security erase. Nothing else is tried.

An NVMe namespace is formatted with a secure erase where its controller can, which takes seconds; a controller that
can only sanitize does so, and is waited for. Neither is done where it would reach another namespace. An ATA disk gets a
password for the time of the erase, since the command needs one; a disk that firmware has frozen is an error.

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
"""Bit of OACS."""
_FORMATS_ALL, _ERASES_ALL, _CRYPTO_FORMAT = 1 << 0, 1 << 1, 1 << 2
"""Bits of FNA: whether a format, or its secure erase, reaches every namespace; whether it can be cryptographic."""
_CRYPTO_SANITIZE, _BLOCK_SANITIZE = 1 << 0, 1 << 1
"""Bits of SANICAP."""
_SANITIZED: Final = {1, 4}
"""Values of the sanitize status: completed, also with forced deallocation."""
_SANITIZING: Final = 2
_STATUS: Final = struct.Struct("<HH")
"""Progress and status, at the beginning of the log page."""
_POLL_S: Final = 2.0
_PASSWORD: Final = "ironbell"  # noqa: S105 - for the time of the erase only; the erase takes it off
_SECURITY: Final = ("hdparm", "--user-master", "u")
_MINUTES: Final = re.compile(r"(\d+)min for SECURITY ERASE UNIT")


@dataclass(frozen=True, slots=True)
class Ata:
    """The security features that an ATA disk reports."""

    supported: bool
    frozen: bool
    locked: bool
    enhanced: bool
    minutes: int | None


def erase(context: Context, device: Device) -> str:
    """Erase the disk by its own means; return the method, or nothing where it has none.

    Raises:
        ActionError: it has such means, and they fail or are locked.
    """
    return erase_nvme(context, device) or erase_ata(context, device)


def erase_nvme(context: Context, device: Device) -> str:
    """Format or sanitize an NVMe namespace; return the method, or nothing for another disk or one that cannot.

    Raises:
        ActionError: it can, and fails.
    """
    match = _NVME.fullmatch(device.kernel_name)
    if match is None:
        return ""
    _require_unused(device)
    return _nvme(context, device, f"/dev/{match[1]}")


def erase_ata(context: Context, device: Device) -> str:
    """Have an ATA disk erase itself; return the method, or nothing for another disk or one that cannot.

    Raises:
        ActionError: it can, and fails, or firmware has frozen it.
    """
    if not _WHOLE_SCSI.fullmatch(device.kernel_name):
        return ""
    ata = parse_security(_printed(["hdparm", "-I", device.path], check=False))
    if ata is None or not ata.supported:
        return ""
    _require_unused(device)
    return _ata(context, device, ata)


def _require_unused(device: Device) -> None:
    """Check that no program has the device open; these commands bypass the kernel's own exclusion."""
    os.close(devices.open_exclusively(device))


def _nvme(context: Context, device: Device, controller: str) -> str:
    controller_fields = _json(["nvme", "id-ctrl", controller, "--output-format=json"])
    alone, fna = not _other_namespaces(device), _number(controller_fields, "fna")
    if _number(controller_fields, "oacs") & _FORMAT_SUPPORTED and (alone or not fna & (_FORMATS_ALL | _ERASES_ALL)):
        crypto = fna & _CRYPTO_FORMAT
        kind = 2 if crypto else 1
        _printed(["nvme", "format", device.path, f"--ses={kind}", "--force"])
        return f"NVMe format with {'cryptographic' if crypto else 'user data'} erase"
    capabilities = _number(controller_fields, "sanicap")
    if alone and capabilities & (_CRYPTO_SANITIZE | _BLOCK_SANITIZE):
        crypto = capabilities & _CRYPTO_SANITIZE
        _printed(["nvme", "sanitize", controller, f"--sanact={4 if crypto else 2}"])
        _wait_for_sanitize(context, device, controller)
        return f"NVMe sanitize ({'cryptographic' if crypto else 'block'} erase)"
    return ""


def _other_namespaces(device: Device) -> bool:
    """Return whether the controller has another namespace, whose data must not be erased."""
    own = _NVME.fullmatch(device.kernel_name)
    matches = [match for name in devices.disks() if (match := _NVME.fullmatch(name)) is not None]
    return own is not None and any(match[1] == own[1] and match[2] != own[2] for match in matches)


def _wait_for_sanitize(context: Context, device: Device, controller: str) -> None:
    meter = Meter(context, operation="sanitize")
    while True:
        log = _output(["nvme", "sanitize-log", controller, "--output-format=binary"])
        if len(log) < _STATUS.size:
            raise ActionError(f"{device}: nvme reports nothing about the sanitize that was started")
        progress, status = _STATUS.unpack_from(log)
        status &= 7
        if status in _SANITIZED:
            return
        if status != _SANITIZING:
            raise ActionError(f"{device}: sanitize ended with status {status}; use WIPE_METHOD=zero")
        share = progress / 65536
        meter.update(int(device.size * share), share=share, total=device.size)
        time.sleep(_POLL_S)


def parse_security(text: str) -> Ata | None:
    """The section `Security` of hdparm's output; None if it is missing."""
    _, heading, rest = text.partition("\nSecurity:")
    if not heading:
        return None
    lines = [line.split() for line in re.split(r"\n(?=\S)", rest)[0].splitlines()]

    def has_line(*words: str) -> bool:
        return list(words) in lines

    minutes = _MINUTES.search(rest)
    return Ata(
        supported=has_line("supported"),
        frozen=has_line("frozen"),
        locked=has_line("locked"),
        enhanced=has_line("supported:", "enhanced", "erase"),
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
        _printed([*_SECURITY, "--security-unlock", _PASSWORD, device.path], fails=f"{device} is locked by a password")
    if ata.minutes is not None:
        context.log(f"{device} reports that erasing takes {ata.minutes} min")
    _printed([*_SECURITY, "--security-set-pass", _PASSWORD, device.path])
    verb = "--security-erase-enhanced" if ata.enhanced else "--security-erase"
    try:
        _printed([*_SECURITY, verb, _PASSWORD, device.path])
    except ActionError:
        with contextlib.suppress(ActionError):
            _printed([*_SECURITY, "--security-disable", _PASSWORD, device.path])
        raise
    return f"ATA security erase{' (enhanced)' if ata.enhanced else ''}"


def _json(command: list[str]) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_printed(command), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ActionError(f"{' '.join(command[:2])} gave no JSON: {error}") from error


def _number(controller_fields: dict[str, Any], name: str) -> int:
    value = controller_fields.get(name, 0)
    return value if isinstance(value, int) else 0


def _printed(command: list[str], *, check: bool = True, fails: str = "") -> str:
    return _output(command, check=check, fails=fails).decode("utf-8", "replace")


def _output(command: list[str], *, check: bool = True, fails: str = "") -> bytes:
    try:
        done = subprocess.run(command, preexec_fn=kernel.die_with_parent, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise ActionError(f"this in-memory OS has no {command[0]}") from error
    if check and done.returncode:
        printed = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        last = next((line for line in reversed(printed) if line.strip()), "")
        problem = fails or f"{' '.join(command[:2])} failed with status {done.returncode}"
        raise ActionError(f"{problem}: {last.strip()}")
    return done.stdout
