"""Standard output and error where they are terminals: whatever is printed there passes `coloured`.

This is the last of two nets. Commands pass what others wrote through `printable` or `one_line` themselves, because only
they know what belongs on one line; what somebody forgot, and what libraries and tracebacks print, is caught here. Into
pipes and files all text is written unchanged.
"""

from __future__ import annotations

import io
import sys
from typing import TextIO

from ironbell.base.printable import coloured


class _Guarded(io.TextIOWrapper):
    def write(self, text: str, /) -> int:
        super().write(coloured(text))
        return len(text)


_STREAMS = ("stdout", "stderr")


def guard_terminals() -> None:
    """Filter what this process prints on terminals from now on. May be called again."""
    for name in _STREAMS:
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and stream.isatty():
            stream.flush()
            setattr(sys, name, _Guarded(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True))


def drawable(stream: TextIO) -> TextIO:
    """The stream without the filter, for what moves the cursor itself and has filtered what it draws."""
    if not isinstance(stream, _Guarded):
        return stream
    original = sys.__stdout__ if stream is sys.stdout else sys.__stderr__
    return original if original is not None else stream
