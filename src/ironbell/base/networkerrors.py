"""Network errors in words for people: asyncio puts a Python tuple into the text of a failed connect."""

from __future__ import annotations

import os


def os_problem(error: OSError) -> str:
    """What went wrong, such as `connection refused`, without numbers, addresses or Python types."""
    if error.errno is not None and error.errno > 0 and type(error).__module__ == "builtins":
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__
