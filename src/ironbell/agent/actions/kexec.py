"""kexec: start the kernel of the system that was just installed.

`BLOCK_DEVICE`, `FS_TYPE`; `KERNEL_PATH`, `INITRD_PATH`, `CMD_LINE` or the default entry of `GRUBCFG_PATH`
(`boot/grub/grub.cfg`); `CMD_LINE` replaces GRUB's arguments. `WAIT_SECONDS` (3) passes between the server's
acknowledgement and the jump. Loading happens before success is reported, so that a failure is seen; where this kernel
cannot do it at all, the machine reboots instead (`KEXEC_FALLBACK=none` fails instead).

Source: tinkerbell/actions: kexec; kexec_file_load(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import tempfile
from pathlib import Path

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, grubcfg, mounts
from ironbell.agent.actions.reboot import DEFAULT_WAIT_S
from ironbell.agent.messages import AfterMessage, Power

_DEFAULT_GRUBCFG = "boot/grub/grub.cfg"
_SYSCALLS = {"x86_64": 320, "aarch64": 294}
_NO_INITRAMFS = 4
# Not built in, or locked down by secure boot.
_UNABLE = {errno.ENOSYS, errno.EPERM}


def run(context: Context) -> None:
    """Load the kernel and have the agent start it."""
    device = devices.resolve(context, context.required("BLOCK_DEVICE"))
    delay_s = context.number("WAIT_SECONDS", default=DEFAULT_WAIT_S)
    with mounts.mounted(device, context.required("FS_TYPE"), read_only=True) as root:
        entry = choose(context, root)
        context.log(f"loading {entry.kernel} with {' '.join(entry.initrds) or 'no initrd'} from {device}")
        try:
            _load(root, entry)
        except OSError as error:
            if error.errno not in _UNABLE or context.text("KEXEC_FALLBACK", "reboot") != "reboot":
                raise ActionError(f"the kernel {entry.kernel} cannot be loaded: {error.strerror}") from error
            context.log(f"this system cannot start another kernel ({error.strerror}); the machine reboots instead")
            context.send(AfterMessage(power=Power.REBOOT, delay_s=delay_s))
            return
    context.send(AfterMessage(power=Power.KEXEC, delay_s=delay_s))


def choose(context: Context, root: Path) -> grubcfg.Entry:
    """The entry to start, from the variables or from GRUB's configuration."""
    arguments = context.text("CMD_LINE")
    if kernel := context.text("KERNEL_PATH"):
        return grubcfg.Entry("", kernel=kernel, initrds=context.text("INITRD_PATH").split(), arguments=arguments)
    name = context.text("GRUBCFG_PATH", _DEFAULT_GRUBCFG)
    path = mounts.inside(root, name)
    if not path.is_file():
        raise ActionError(f"{name} does not exist on the disk; set KERNEL_PATH, or GRUBCFG_PATH")
    entry = grubcfg.default_entry(path.read_text("utf-8", "replace"))
    if entry is None:
        raise ActionError(f"{name} has no menu entry with a kernel; set KERNEL_PATH")
    if arguments:
        entry.arguments = arguments
    return entry


def _file(root: Path, name: str) -> Path:
    """A kernel or initrd by its path; a separate boot partition has it without `/boot`."""
    for candidate in (name, name.removeprefix("/boot")):
        path = mounts.inside(root, candidate)
        if path.is_file():
            return path
    raise ActionError(f"{name} does not exist on the disk")


def _load(root: Path, entry: grubcfg.Entry) -> None:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    kernel = _file(root, entry.kernel)
    initrds = [_file(root, name) for name in entry.initrds]
    arguments = entry.arguments.encode() + b"\0"
    with kernel.open("rb") as kernel_file, tempfile.TemporaryFile() as initrd_file:
        for initrd in initrds:
            initrd_file.write(initrd.read_bytes())
        initrd_file.flush()
        libc = ctypes.CDLL(None, use_errno=True)
        result = libc.syscall(
            ctypes.c_long(number),
            ctypes.c_int(kernel_file.fileno()),
            ctypes.c_int(initrd_file.fileno() if initrds else -1),
            ctypes.c_ulong(len(arguments)),
            ctypes.c_char_p(arguments),
            ctypes.c_ulong(0 if initrds else _NO_INITRAMFS),
        )
    if result != 0:
        failure = ctypes.get_errno()
        raise OSError(failure, os.strerror(failure))
