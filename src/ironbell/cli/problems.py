"""Report the failure of a command: one line on standard error, with the remedy, and an exit status.

With `-o json`, an object `error` on standard output has the same content as values.

Exit statuses: 1 the command failed, 2 the command line is wrong, 130 interrupted, 141 nobody reads the output.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from typing import Any

import click

from ironbell.api.client import Unreachable
from ironbell.base.errors import IronbellError
from ironbell.cli.output import print_json

SHOW_TRACEBACK = "IRONBELL_TRACEBACK"
FAILED, INTERRUPTED, NO_READER = 1, 130, 141
_BY_CODE = {
    401: "Use a kubeconfig of this API that is still valid; `ironbell up` writes one at every start.",
    403: "Use a kubeconfig or --context of a user who may do that, or have the right granted.",
}
"""Remedies for a rejection by the API server, by HTTP status."""
_UNREACHABLE = "Check that the API server runs, and that the kubeconfig belongs to it."
_REMEDIES = {
    errno.ENOENT: "Check the path.",
    errno.ENOTDIR: "Check the path.",
    errno.EISDIR: "Use a file instead of a folder.",
    errno.EEXIST: "Choose another path.",
    errno.EACCES: "Run as root or with sudo, or choose another path.",
    errno.EPERM: "Run as root or with sudo, or choose another path.",
    errno.EROFS: "Choose another path.",
    errno.ENOSPC: "Free some space, or choose another path.",
}


def report(error: BaseException, *, as_json: bool = False) -> int:
    """Print why a command failed, and return the exit status."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        # the rest of the buffer has no reader either: flushing it at exit would fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    if isinstance(error, click.Abort):
        click.echo(err=True)  # the cursor is behind the prompt
    status, message = _described(error)
    click.echo(f"ironbell: {message}", err=True)
    if as_json:
        with contextlib.suppress(BrokenPipeError):  # standard output may be closed
            print_json({"error": _values(error, message, status)})
    return status


def _values(error: BaseException, message: str, status: int) -> dict[str, Any]:
    """The content of the line as values; `details` of the error (such as `why`) are added."""
    reason = getattr(error, "reason", "") or type(error).__name__
    return {**getattr(error, "details", {}), "reason": str(reason), "message": message, "status": status}


def _described(error: BaseException) -> tuple[int, str]:
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "ironbell"
        message = error.format_message()
        return error.exit_code, f"{message}{'' if message[-1:] in '.?!' else '.'} `{command} --help` shows the options."
    if isinstance(error, click.ClickException):
        return error.exit_code, error.format_message()
    is_interrupt = isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)
    if isinstance(error, click.Abort) and not is_interrupt and not sys.stdin.isatty():
        return FAILED, "This command needs a confirmation, and standard input is not a terminal. Confirm it with --yes."
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, IronbellError):
        remedy = _UNREACHABLE if isinstance(error, Unreachable) else _BY_CODE.get(getattr(error, "code", 0), "")
        return FAILED, f"{str(error).rstrip('.')}. {remedy}" if remedy else str(error)
    if isinstance(error, OSError) and error.errno is not None:
        named = f"{error.filename}: " if error.filename else ""
        problem = os.strerror(error.errno)
        return FAILED, f"{named}{problem[:1].lower()}{problem[1:]}. {_REMEDIES.get(error.errno, '')}".rstrip()
    if os.environ.get(SHOW_TRACEBACK):
        traceback.print_exception(error)
    kind, text = type(error).__name__, " ".join(str(error).split())
    return FAILED, (
        f"internal error, {kind}: {text}. This is a defect of Ironbell: report it, with what the same command prints "
        f"with {SHOW_TRACEBACK}=1 in the environment."
    )
