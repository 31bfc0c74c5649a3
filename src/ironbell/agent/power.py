"""Leave the in-memory OS: reboot, power off, or start a kernel that was loaded before.

It calls the kernel directly, so that it does not depend on the first process; file systems live in memory, and actions
have written theirs back. So that a workstation is never powered off by mistake, it acts only on a machine that was
booted for the agent (its kernel command line shows that) or where `IRONBELL_POWER=real` is set, as inside a machine
made of namespaces.

Source: reboot(2).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Mapping

from ironbell.agent.messages import Power
from ironbell.base.errors import IronbellError, Retry

POWER_VARIABLE = "IRONBELL_POWER"
SYNC_S = 20.0

_COMMANDS = {Power.REBOOT: 0x01234567, Power.POWEROFF: 0x4321FEDC, Power.KEXEC: 0x45584543}


Switch = Callable[[Power], None]


class PowerRejectedError(IronbellError):
    """The agent may not reboot or power off this machine."""

    reason = "PowerRefused"
    retry = Retry.NEVER


def permitted(cmdline: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return whether the agent owns the machine that it runs on."""
    return environment.get(POWER_VARIABLE) == "real" or "worker_id" in cmdline or "grpc_authority" in cmdline


def switch(power: Power) -> None:
    """Carry out the operation at once. Returns only by an error.

    Raises:
        OSError: the kernel rejected it, such as kexec without a loaded kernel.
    """
    # A defective disk may block this for ever; the actions' data is on its disk already.
    syncing = threading.Thread(target=os.sync, name="sync", daemon=True)
    syncing.start()
    syncing.join(SYNC_S)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.reboot(ctypes.c_uint(_COMMANDS[power])) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{power.value}: {os.strerror(number)}")
