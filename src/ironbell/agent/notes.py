"""What a built-in action tells the agent beside its output: progress, why it failed, what is to follow.

Notes are JSON lines on a pipe whose descriptor number is in `IRONBELL_NOTES_FD`. The agent ignores what it cannot
read, so that an action can never disturb it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

NOTES_FD_VARIABLE = "IRONBELL_NOTES_FD"


class ProgressNote(msgspec.Struct, frozen=True, kw_only=True, tag="progress", omit_defaults=True):
    """How far the action is: bytes that have reached their target, and what share of the whole that is."""

    done_bytes: int
    total_bytes: int | None = None
    """None where nobody knows, as with compressed images."""
    percent: float | None = None
    bytes_per_second: int = 0


class FailureNote(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """Why the action failed: one sentence that names the remedy."""

    message: str


class ResultNote(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """What the action did, where that is worth keeping, such as what was erased and how; several are one text."""

    message: str


class Power(StrEnum):
    """How the machine leaves the in-memory OS."""

    REBOOT = "reboot"
    POWEROFF = "poweroff"
    KEXEC = "kexec"


class AfterNote(msgspec.Struct, frozen=True, kw_only=True, tag="after"):
    """What the agent does once the action's success has been acknowledged by the server."""

    power: Power
    delay_s: float = 0.0


Note = ProgressNote | FailureNote | ResultNote | AfterNote

_DECODER: msgspec.json.Decoder[Note] = msgspec.json.Decoder(Note)


def encode(note: Note) -> bytes:
    """One line for the pipe."""
    return msgspec.json.encode(note) + b"\n"


def decode(line: bytes) -> Note | None:
    """A line of the pipe, or None for anything that is no note."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
