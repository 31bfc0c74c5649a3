"""Files that users give: read as text, or one line on why they cannot be."""

from __future__ import annotations

import sys
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry

STANDARD_INPUT = "-"


class InputError(IronbellError):
    """A file that cannot be read, or is no text."""

    reason = "InvalidInput"
    retry = Retry.NEVER


def read_text(path: str, *, purpose: str) -> str:
    """The text of a file, or of standard input for `-`. `purpose` names what is expected, such as "a cluster template".

    Raises:
        InputError: it does not exist, is a folder, or holds bytes that are no text.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    try:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
    except IsADirectoryError:
        raise InputError(f"{name} is a folder; give the file that holds {purpose}") from None
    except FileNotFoundError:
        raise InputError(
            f"there is no file {name}; give the file that holds {purpose}, or - for standard input"
        ) from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}") from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{name} is a binary file; give {purpose}, which is YAML")
    return text
