"""Messages of a built-in action to the agent, beside its output: progress, the reason of a failure, power operations.

Messages are JSON lines on a pipe whose descriptor number is in `IRONBELL_NOTES_FD`. The agent ignores what it cannot
read, so that an action can never disturb it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

MESSAGES_FD_VARIABLE = "IRONBELL_NOTES_FD"


class ProgressMessage(msgspec.Struct, frozen=True, kw_only=True, tag="progress", omit_defaults=True):
    """The progress of the action: bytes that have reached their target, and their share of the whole."""

    done_bytes: int
    total_bytes: int | None = None
    """None if unknown, as with compressed images."""
    percent: float | None = None
    bytes_per_second: int = 0


class FailureMessage(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The reason why the action failed: one sentence that names the remedy."""

    message: str


class ResultMessage(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """A result of the action that is recorded, such as the method of a wipe; several are joined to one text."""

    message: str


class Power(StrEnum):
    """A way to leave the in-memory OS."""

    REBOOT = "reboot"
    POWEROFF = "poweroff"
    KEXEC = "kexec"


class AfterMessage(msgspec.Struct, frozen=True, kw_only=True, tag="after"):
    """The power operation that the agent does once the server has acknowledged the action's success."""

    power: Power
    delay_s: float = 0.0


Message = ProgressMessage | FailureMessage | ResultMessage | AfterMessage

_DECODER: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def encode(message: Message) -> bytes:
    """A message as a line for the pipe."""
    return msgspec.json.encode(message) + b"\n"


def decode(line: bytes) -> Message | None:
    """Decode a line of the pipe; None if it is not a message."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
