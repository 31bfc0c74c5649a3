"""TFTP messages: bytes to values and back.

Source: RFC 1350, section 5; RFC 2347 (options and OACK).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import msgspec

from ironbell.base.errors import IronbellError, Retry


class TftpDecodeError(IronbellError):
    """The bytes are no TFTP message."""

    reason, retry = "MalformedTftpMessage", Retry.NEVER


class Opcode(IntEnum):
    """First two bytes of every message."""

    READ = 1
    WRITE = 2
    DATA = 3
    ACK = 4
    ERROR = 5
    OPTION_ACK = 6


class ErrorCode(IntEnum):
    """Codes of ERROR messages (RFC 1350, appendix; RFC 2347 for the last)."""

    UNDEFINED = 0
    NOT_FOUND = 1
    ACCESS_VIOLATION = 2
    DISK_FULL = 3
    ILLEGAL_OPERATION = 4
    UNKNOWN_TRANSFER = 5
    FILE_EXISTS = 6
    NO_SUCH_USER = 7
    OPTION_REJECTED = 8


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request to read or write; option names and the mode are in lower case."""

    opcode: int
    filename: str
    mode: str
    options: dict[str, str] = {}


class Data(msgspec.Struct, frozen=True, gc=False):
    """One block; one that is shorter than the block size is the last."""

    block: int
    payload: bytes


class Ack(msgspec.Struct, frozen=True, gc=False):
    """Everything up to this block has arrived."""

    block: int


class Error(msgspec.Struct, frozen=True, gc=False):
    """The end of a transfer that did not succeed."""

    code: int
    message: str


class OptionAck(msgspec.Struct, frozen=True, gc=False):
    """The options that the server takes, names in lower case."""

    options: dict[str, str]


Message = Request | Data | Ack | Error | OptionAck


def decode(data: bytes) -> Message:
    """Read one message.

    Raises:
        TftpDecodeError: the bytes are not a message.
    """
    if len(data) < 4 or data[0] != 0:
        raise TftpDecodeError(f"{len(data)} bytes that begin with {data[:2].hex()} are no TFTP message")
    opcode = data[1]
    if opcode == Opcode.ACK:
        return Ack((data[2] << 8) | data[3])
    if opcode == Opcode.DATA:
        return Data((data[2] << 8) | data[3], data[4:])
    if opcode == Opcode.ERROR:
        text = data[4:].partition(b"\0")[0]
        return Error((data[2] << 8) | data[3], text.decode("utf-8", "backslashreplace"))
    if opcode in {Opcode.READ, Opcode.WRITE}:
        return _request(opcode, _strings(data))
    if opcode == Opcode.OPTION_ACK:
        return OptionAck(_options(_strings(data)))
    raise TftpDecodeError(f"operation {opcode} is unknown")


def _strings(data: bytes) -> list[str]:
    """NUL-terminated strings after the operation; empty ones at the end are padding, which some ROMs add."""
    if data[-1] != 0:
        raise TftpDecodeError("the last string is not terminated")
    try:
        strings = [piece.decode() for piece in data[2:-1].split(b"\0")]
    except UnicodeDecodeError:
        raise TftpDecodeError("a string is not UTF-8") from None
    while strings and not strings[-1]:
        strings.pop()
    return strings


def _request(opcode: int, strings: list[str]) -> Request:
    if len(strings) < 2:
        raise TftpDecodeError("a request needs a file name and a mode")
    return Request(opcode, strings[0], strings[1].lower(), _options(strings[2:]))


def _options(strings: list[str]) -> dict[str, str]:
    """Pairs of name and value; the first of a name counts (RFC 2347: each at most once)."""
    if len(strings) % 2:
        raise TftpDecodeError(f"option {strings[-1]!r} has no value")
    options: dict[str, str] = {}
    for name, value in zip(strings[::2], strings[1::2], strict=True):
        options.setdefault(name.lower(), value)
    return options


def request_bytes(request: Request) -> bytes:
    return _op(request.opcode) + _joined([request.filename, request.mode, *_flat(request.options)])


def data_bytes(block: int, payload: bytes | memoryview) -> bytes:
    """`block` is taken modulo 65536: block numbers wrap to 0."""
    return b"".join((b"\0\x03", (block & 0xFFFF).to_bytes(2, "big"), payload))


def ack_bytes(block: int) -> bytes:
    """`block` is taken modulo 65536."""
    return b"\0\x04" + (block & 0xFFFF).to_bytes(2, "big")


def error_bytes(code: ErrorCode, message: str) -> bytes:
    return _op(Opcode.ERROR) + code.to_bytes(2, "big") + _joined([message])


def option_ack_bytes(options: Mapping[str, str]) -> bytes:
    return _op(Opcode.OPTION_ACK) + _joined(_flat(options))


def _op(opcode: int) -> bytes:
    return opcode.to_bytes(2, "big")


def _flat(options: Mapping[str, str]) -> list[str]:
    return [text for pair in options.items() for text in pair]


def _joined(strings: list[str]) -> bytes:
    return b"".join(text.replace("\0", "").encode() + b"\0" for text in strings)
