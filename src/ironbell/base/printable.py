"""Text that others wrote, made fit for people: nothing in it controls a terminal, hides text or forges a line.

Machines, agents, BMCs and clients that store objects may send any text. Code that prints such text, or puts it into an
Event or a condition, passes it through here. Programs get the original: JSON is only escaped, never changed.

Source: ECMA-48 sections 5.3, 5.4 and 8.3.117 (SGR); xterm's ctlseqs (OSC 52 writes the clipboard); Unicode TR 36
section 2 (bidirectional controls); kubernetes/cli-runtime: pkg/printers/terminal.go.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Final

PLAIN: Final = "\x1b[0m"
"""Ends all colours."""

_SETS: Final = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f",  # C0 without tab and newline, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",  # direction of writing: shows text in another order than it is in
    r"\u2028\u2029\ufff9-\ufffb\U000e0000-\U000e007f",  # separators, annotations, tags
    r"\ud800-\udfff",  # halves of characters, which no terminal's encoding has
)
_CONTROLS: Final = re.compile(f"[{''.join(_SETS)}]")
# What changes how text looks, and neither hides it (8) nor makes it blink (5, 6).
_COLOUR: Final = r"(?:[34]8;(?:5;\d{1,3}|2;\d{1,3};\d{1,3};\d{1,3})|0?[0-47]|2[1-47]|3[0-79]|4[0-79]|9[0-7]|10[0-7])"
_SGR: Final = rf"\x1b\[(?:{_COLOUR}(?:;{_COLOUR}){{0,7}})?m"
_COLOURS_AND_CONTROLS: Final = re.compile(f"({_SGR})|{_CONTROLS.pattern}")
_SEQUENCES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # DCS, SOS, OSC, PM, APC
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
_LONGEST_LINE: Final = 1 << 16


def printable(text: str) -> str:
    """The text with every control character but tab and newline written out, such as `\\x1b`."""
    return text if text.isprintable() else _CONTROLS.sub(_written_out, text)


def one_line(text: str) -> str:
    """`printable` text in a single line, as for a cell of a table or a value in a log."""
    return printable(text).replace("\n", "\\n")


def coloured(text: str) -> str:
    """`printable` text that keeps its colours; every other sequence is written out."""
    if text.isprintable():
        return text
    return _COLOURS_AND_CONTROLS.sub(lambda match: match[1] or _written_out(match), text)


def coloured_lines(text: str) -> str:
    """`coloured` text in which no colour goes on after the end of its line."""
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return "\n".join(line + PLAIN if "\x1b" in line else line for line in map(coloured, lines))


def plain(text: str) -> str:
    """The text without control sequences; other control characters are spaces, lines stay."""
    text = _SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(char if char == "\n" or char.isprintable() else " " for char in text)


def escaped_json(text: str) -> str:
    """The same JSON document, with the control characters that JSON allows in strings as escapes."""
    return text if text.isprintable() else _CONTROLS.sub(_json_escape, text)


class LineFilter:
    """A filter for UTF-8 that comes in pieces: `fit` gets whole lines. Bytes that are not UTF-8 are written out."""

    def __init__(self, fit: Callable[[str], str] = coloured_lines) -> None:
        self._fit = fit
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""

    def feed(self, data: bytes) -> str:
        """The lines that are complete now."""
        text = self._rest + self._decoder.decode(data)
        whole, newline, rest = text.rpartition("\n")
        if len(rest) > _LONGEST_LINE:
            whole, newline, rest = text, "", ""
        self._rest = rest
        return self._fit(whole) + newline

    def end(self) -> str:
        """Return the text after the last newline."""
        text, self._rest = self._rest + self._decoder.decode(b"", final=True), ""
        return self._fit(text)


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _utf16(ord(match[0])))


def _utf16(code: int) -> tuple[int, ...]:
    if code < 0x10000:
        return (code,)
    code -= 0x10000
    return (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
