"""Owner of a file that only this process, or root, may have written."""

from __future__ import annotations

import os
import pwd


def other_owner(status: os.stat_result) -> str:
    """The name or number of the account that a file belongs to, if that is neither this process's nor root; else empty.

    Such an account could have put anything into the file.
    """
    return "" if status.st_uid in {0, os.geteuid()} else account_name(status.st_uid)


def account_name(uid: int) -> str:
    """The name of an account, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
