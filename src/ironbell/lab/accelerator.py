"""Detects whether QEMU can use KVM here, by a trial: a `/dev/kvm` that exists may still not work (nested machines).

Hosts that are virtual machines may offer a KVM that carries out kernels and not firmware: it stops in its first
instructions, or somewhere in a network card's boot code. So firmware is started, and must still run after a moment;
and a KVM that is known to be of that kind is not tried at all.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Final

import msgspec

from ironbell.lab.qemu import PROGRAM, UEFI_CODE

PARAVIRTUAL: Final = Path("/sys/module/kvm_pvm")
"""KVM without the processor's help: code that is unusual for a kernel stops it with an internal error."""
TRIAL_S: Final = 2.0
PROBE_TIMEOUT_S: Final = 10.0
_PROBE: Final = (
    PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,accel=kvm", "-cpu", "host",
    "-m", "128", "-qmp", "stdio",
)  # fmt: skip
_BEGIN: Final = b'{"execute": "qmp_capabilities"}\n'
_END: Final = b'{"execute": "query-status"}\n{"execute": "quit"}\n'


def has_kvm() -> bool:
    """Start a machine with firmware and nothing else, and see whether it still runs; takes two seconds."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK) or PARAVIRTUAL.exists():
        return False
    code = next((path for path in UEFI_CODE if Path(path).exists()), None)
    firmware = ("-drive", f"if=pflash,format=raw,unit=0,readonly=on,file={code}") if code is not None else ()
    try:
        return still_runs(_tried((*_PROBE, *firmware)))
    except (OSError, subprocess.SubprocessError):
        return False


def _tried(command: tuple[str, ...]) -> bytes:
    """QEMU's answers after a moment."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        if process.stdin is not None:
            process.stdin.write(_BEGIN)
            process.stdin.flush()
        time.sleep(TRIAL_S)
        return process.communicate(_END, timeout=PROBE_TIMEOUT_S)[0]
    finally:
        process.kill()
        process.wait()


def still_runs(answers: bytes) -> bool:
    """Return whether one of QEMU's answers reports that the machine runs."""
    for line in answers.splitlines():
        try:
            answer = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        status = answer.get("return") if isinstance(answer, dict) else None
        if isinstance(status, dict) and status.get("running") is True:
            return True
    return False
