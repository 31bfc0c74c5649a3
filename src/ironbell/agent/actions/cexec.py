"""cexec: run a command inside the system on a disk.

`BLOCK_DEVICE`, `FS_TYPE`, `CMD_LINE`; `CHROOT` (any text) changes root into the file system; `DEFAULT_INTERPRETER`
(such as `/bin/sh -c`) gets the whole line as one argument; without it the line is split at `;` and spaces;
`UPDATE_RESOLV_CONF=true` mounts this system's name servers for the time of the command. `JSON_OUTPUT` is accepted and
has no effect: output is passed on unchanged. Status 10 is a bad value, 20 a missing one, 30 a failed command.

Source: tinkerbell/actions: cexec.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from ironbell.agent.actions.context import ActionError, Context
from ironbell.agent.actions.disks import devices, kernel, mounts

_BINDS = ("/dev", "/proc", "/sys")
_RESOLV_CONF = "/etc/resolv.conf"
_FAILED = 30


def command_lines(line: str, interpreter: str) -> list[list[str]]:
    """The programs to run, one after the other, each as its arguments."""
    if interpreter.strip():
        return [[*interpreter.split(), line]]
    return [words for part in line.split(";") if (words := part.split())]


def run(context: Context) -> None:
    """Run the command."""
    lines = command_lines(context.required("CMD_LINE"), context.text("DEFAULT_INTERPRETER"))
    if not lines:
        raise ActionError("CMD_LINE has no command", exit_status=10)
    needs_resolver = context.flag("UPDATE_RESOLV_CONF")
    device = devices.resolve(context, context.required("BLOCK_DEVICE"))
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(mounts.mounted(device, context.required("FS_TYPE")))
        changes_root = bool(context.text("CHROOT"))
        if changes_root:
            stack.enter_context(bound(root))
            if needs_resolver:
                stack.enter_context(_with_resolver(root))
        for arguments in lines:
            run_command(arguments, root=root if changes_root else None, environment=passed_on(context.environment))
    context.log(f"ran {len(lines)} command(s) on {device}")


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The action's variables without the agent's own."""
    return {key: value for key, value in environment.items() if not key.startswith(("IRONBELL_", "PYTHON"))}


def run_command(arguments: list[str], *, root: Path | None, environment: dict[str, str]) -> None:
    """Run a program, inside the mounted system if `root` is set.

    Raises:
        ActionError: the program failed, or cannot be run.
    """

    def enter() -> None:
        kernel.die_with_parent()
        if root is not None:
            os.chroot(root)
            os.chdir("/")

    name = arguments[0]
    try:
        # The process has one thread, so that running code between fork and exec is safe.
        status = subprocess.run(arguments, preexec_fn=enter, env=environment, check=False).returncode
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise ActionError(f"there is no program {name} in the system on the disk", exit_status=_FAILED) from error
        if error.errno == errno.ENOEXEC:
            reason = f"{name} cannot run here: it is built for another processor architecture, or is not a program"
            raise ActionError(reason, exit_status=_FAILED) from error
        raise ActionError(f"{name}: {error.strerror}", exit_status=_FAILED) from error
    if status:
        ending = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        # Not its arguments: they may hold a password, and this text goes into the Workflow and into events.
        raise ActionError(f"{name} {ending}; its output is in the action's log", exit_status=_FAILED)


@contextlib.contextmanager
def bound(root: Path) -> Iterator[None]:
    """Mount the kernel's file systems inside the mounted system, while the context lasts."""
    mounted: list[str] = []
    try:
        for source in _BINDS:
            point = mounts.inside(root, source)
            point.mkdir(parents=True, exist_ok=True)
            # with the mounts below, such as /dev/pts
            kernel.mount(source, str(point), flags=kernel.MS_BIND | kernel.MS_REC)
            mounted.append(str(point))
        yield
    finally:
        for bound in reversed(mounted):
            kernel.unmount(bound, detach=True)


@contextlib.contextmanager
def _with_resolver(root: Path) -> Iterator[None]:
    """Mount this system's name servers over the disk's: a bind mount, so that the disk's file never changes."""
    source = Path(_RESOLV_CONF).resolve()
    if not source.is_file():
        yield
        return
    target = mounts.inside(root, _RESOLV_CONF)
    is_new = not target.exists()
    if is_new:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    kernel.mount(str(source), str(target), flags=kernel.MS_BIND)
    try:
        yield
    finally:
        kernel.unmount(str(target), detach=True)
        if is_new:
            target.unlink(missing_ok=True)
