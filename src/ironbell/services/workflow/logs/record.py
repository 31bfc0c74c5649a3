"""One line of an action's log as it is stored: a JSON object per line of the file."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Source(StrEnum):
    """Where a line comes from."""

    OUT = "out"
    ERR = "err"
    AGENT = "agent"
    MACHINE = "machine"
    """Said by the machine's operating system, outside of any action."""
    NOTE = "note"
    """Written by the log itself: a gap, a limit."""
    END = "end"
    """No line: the execution has ended."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line. Field names are short because every line carries them."""

    time: str = msgspec.field(name="t")
    """RFC 3339 with microseconds, by the server's clock."""
    action: str = msgspec.field(name="a", default="")
    """Id of the action."""
    execution: str = msgspec.field(name="x", default="")
    sequence: int = msgspec.field(name="n", default=0)
    source: Source = msgspec.field(name="s", default=Source.OUT)
    text: str = msgspec.field(name="m", default="")
    exit_code: int | None = msgspec.field(name="c", default=None)


_DECODER = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """One line of the file."""
    return msgspec.json.encode(record) + b"\n"


def decode(line: bytes) -> Record | None:
    """A line of the file, or None where it is damaged."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
