"""The root of every error type in Ironbell.

An error says who can do something about it: `reason` is a CamelCase word that goes into conditions and events,
`retry` states whether a retry can help. Messages are for people; code uses types and fields.
"""

from __future__ import annotations

import os
from enum import Enum


class Retry(Enum):
    """Retry policy of an error: whether the same call may succeed later without any change."""

    NEVER = "never"
    BACKOFF = "backoff"
    SOON = "soon"
    """Nothing has failed, others only go first: with backoff, but never long after."""


class IronbellError(Exception):
    """Base of all errors raised by Ironbell.

    `reason` is a CamelCase identifier, fit for a condition's `reason`; `message` is one sentence for a person
    that names the field or thing at fault and, where there is one, the remedy.
    """

    reason: str = "Error"
    retry: Retry = Retry.BACKOFF

    def __init__(self, message: str, *, reason: str | None = None, retry: Retry | None = None) -> None:
        super().__init__(message)
        self.message = message
        if reason is not None:
            self.reason = reason
        if retry is not None:
            self.retry = retry

    def __str__(self) -> str:
        return self.message


def os_problem(error: OSError) -> str:
    """Describe a network error to people, such as `connection refused`, without numbers, addresses or Python types.

    asyncio puts a Python tuple into the text of a failed connect.
    """
    if error.errno is not None and error.errno > 0 and type(error).__module__ == "builtins":
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__
