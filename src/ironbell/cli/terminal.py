"""What others wrote, made fit to show on a terminal: machines' messages must not move the reader's cursor.

Source: ECMA-48 sections 5.3 and 5.4 (control characters); kubernetes/cli-runtime: pkg/printers/terminal.go.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """With control characters other than tab and newline written out."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def one_line(text: str) -> str:
    """The same in a single line, as for a cell of a table."""
    return printable(text).replace("\n", "\\n")
