"""Enter a network namespace, and give up root permanently.

A server for machines binds its sockets as root and then becomes an ordinary user that owns nothing but its logs; it
cannot regain root, which `drop_privileges` verifies. A process that is not root keeps its account.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
ACCOUNT = "ironbell"
"""The account that services run as, if the system has an account of this name."""
SERVICE_ID = 60770
"""The numeric id that services run as elsewhere: no account has to be created for it, and no other program has it, as
with `nobody`. Neither Debian nor systemd assigns ids of this range to anybody (systemd: docs/UIDS-GIDS.md)."""
_IDS = re.compile(r"([0-9]{1,10})(?::([0-9]{1,10}))?")
_MOST = (1 << 32) - 2


class PrivilegeError(IronbellError):
    """A privilege could not be used or given up."""

    reason = "PrivilegeError"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Account:
    """The user that network-facing processes run as."""

    name: str
    uid: int
    gid: int


def service_account() -> Account:
    """The system's `ironbell` account, else `SERVICE_ID`; the caller's own account when it is not root.

    Raises:
        PrivilegeError: `SERVICE_ID` belongs to another account.
    """
    if os.geteuid() != 0:
        return Account("self", os.geteuid(), os.getegid())
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        pass
    else:
        return Account(ACCOUNT, entry.pw_uid, entry.pw_gid)
    try:
        other = pwd.getpwuid(SERVICE_ID).pw_name
    except KeyError:
        return Account(str(SERVICE_ID), SERVICE_ID, SERVICE_ID)
    raise PrivilegeError(
        f'the user id {SERVICE_ID}, which the servers for machines run as, belongs to account "{other}"; set another '
        "one "
        "with --user"
    )


def named_account(name: str) -> Account:
    """The account of that name or numeric id (UID, or UID:GID); without one, `service_account`.

    Raises:
        PrivilegeError: there is no such account, or it is root.
    """
    if not name or os.geteuid() != 0:
        return service_account()
    if (ids := _IDS.fullmatch(name)) is not None:
        account = Account(name, int(ids[1]), int(ids[2] or ids[1]))
        if max(account.uid, account.gid) > _MOST:
            raise PrivilegeError(f"--user {name}: the largest id is {_MOST}")
    else:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise PrivilegeError(
                f'--user {name}: this machine has no account "{name}"; use an existing one, or a number'
            ) from None
        account = Account(name, entry.pw_uid, entry.pw_gid)
    if 0 in {account.uid, account.gid}:
        raise PrivilegeError(f"--user {name}: the servers for machines do not run as root")
    return account


def drop_privileges(account: Account) -> None:
    """Become `account` and keep nothing of root. Does nothing if the process is not root.

    Raises:
        PrivilegeError: root could be regained.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise PrivilegeError(f"cannot set no_new_privs: {os.strerror(ctypes.get_errno())}")
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise PrivilegeError("root privileges could be regained after dropping them")


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, so that its ports are free for a successor. Call it after
    `drop_privileges`, which would undo it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter_network_namespace(path: Path) -> None:
    """Move this process (and the threads it will start) into a network namespace.

    Raises:
        PrivilegeError: the namespace does not exist, or the process may not enter it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise PrivilegeError(f"cannot open the network namespace {path}: {error.strerror}") from error
    try:
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            raise PrivilegeError(f"cannot enter the network namespace {path}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)
