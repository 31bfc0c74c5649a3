"""Whether QEMU can use KVM here: tried, since a `/dev/kvm` that is there may still not work (nested machines)."""

from __future__ import annotations

import os
import subprocess

from ironbell.lab.qemu import PROGRAM

PROBE_TIMEOUT_S = 10
_PROBE = (
    PROGRAM, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,accel=kvm", "-cpu", "host",
    "-m", "64", "-qmp", "stdio",
)  # fmt: skip
_QUIT = b'{"execute": "qmp_capabilities"}\n{"execute": "quit"}\n'


def has_kvm() -> bool:
    """Start an empty machine with KVM and end it again; takes a fraction of a second."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    try:
        done = subprocess.run(_PROBE, input=_QUIT, capture_output=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
