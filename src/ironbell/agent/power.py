"""Leave the in-memory OS: reboot, power off, or start a kernel that was loaded before.

It calls the kernel directly, so that it works whatever the first process is; file systems live in memory, and
actions have written theirs back. So that nobody's workstation goes down by mistake, it acts only on a machine that
was booted for the agent (its kernel command line says so) or where `IRONBELL_POWER=real` is set, as inside a machine
made of namespaces.

Source: reboot(2).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping

from ironbell.agent.notes import Power
from ironbell.base.errors import IronbellError, Retry

POWER_VARIABLE = "IRONBELL_POWER"
SYNC_S = 20.0

_COMMANDS = {Power.REBOOT: 0x01234567, Power.POWEROFF: 0x4321FEDC, Power.KEXEC: 0x45584543}


Switch = Callable[[Power], None]


class PowerRefusedError(IronbellError):
    """This is no machine that the agent may switch."""

    reason = "PowerRefused"
    retry = Retry.NEVER


def permitted(cmdline: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether the agent owns the machine it runs on."""
    return environment.get(POWER_VARIABLE) == "real" or "worker_id" in cmdline or "grpc_authority" in cmdline


def switch(power: Power) -> None:
    """Do it, at once. Returns only by an error.

    Raises:
        OSError: the kernel refused, such as kexec without a loaded kernel.
    """
    # A defective disk may keep it waiting for ever; what the actions wrote is on its disk already.
    syncing = threading.Thread(target=os.sync, name="sync", daemon=True)
    syncing.start()
    syncing.join(SYNC_S)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.reboot(ctypes.c_uint(_COMMANDS[power])) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{power.value}: {os.strerror(number)}")
