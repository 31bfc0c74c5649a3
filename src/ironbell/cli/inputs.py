"""Files that users give, or what they pipe into a command."""

from __future__ import annotations

import sys
from pathlib import Path

from ironbell.base.textfile import read_text_file, text_of

STANDARD_INPUT = "-"


def read_text(path: str, *, purpose: str) -> str:
    """The text of a file, or of standard input for `-`. `purpose` names what is expected, such as "a cluster template".

    Raises:
        TextFileError: it does not exist, is a folder, cannot be read, or holds bytes that are no text.
    """
    if path == STANDARD_INPUT:
        return text_of(sys.stdin.buffer.read(), name="standard input", purpose=purpose)
    return read_text_file(Path(path), purpose=purpose, also=", or - for standard input")
