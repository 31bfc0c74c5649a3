"""Options as bytes: code, length, value; long values in several pieces.

A value over 255 bytes is split over repeated options and joined again (RFC 3396); Pad and End are single bytes
(RFC 2132, section 3). Sub-options of options 43 and 82 have the same form without the splitting.
"""

from __future__ import annotations

from collections.abc import Mapping

from ironbell.codec.dhcp.errors import DecodeError, EncodeError, OptionError
from ironbell.codec.dhcp.numbers import END, PAD, Option

MAX_PIECE = 255
_UNWRITABLE = frozenset({PAD, int(Option.OVERLOAD), END})
_ORDER = {code: code if code != Option.RELAY_AGENT else END for code in range(END + 1)}


def parse_options(data: bytes, start: int, into: dict[int, bytes]) -> None:
    """Add the options found in `data` from `start` on.

    The End option may be missing: some firmware fills the field to its last byte.

    Raises:
        DecodeError: an option runs over the end of the data.
    """
    position, size = start, len(data)
    while position < size:
        code = data[position]
        if code == PAD:
            position += 1
            continue
        if code == END:
            return
        value_at = position + 2
        if value_at > size:
            raise DecodeError(f"option {code} at byte {position} has no length")
        position = value_at + data[value_at - 1]
        if position > size:
            raise DecodeError(f"option {code} runs {position - size} bytes over the end of the message")
        value = data[value_at:position]
        into[code] = into[code] + value if code in into else value


def write_options(options: Mapping[int, bytes], out: bytearray) -> None:
    """Append options in ascending order, the relay agent's last (RFC 3046, section 2.1), then End.

    Raises:
        EncodeError: a code that cannot carry a value.
        KeyError: a code over 255.
    """
    for code in sorted(options, key=_ORDER.__getitem__):
        value = options[code]
        size = len(value)
        if code in _UNWRITABLE:
            raise EncodeError(f"option {code}", "this code cannot be written as an option with a value")
        if size <= MAX_PIECE:
            out.append(code)
            out.append(size)
            out += value
        else:
            _write_pieces(code, value, out)
    out.append(END)


def encoded_size(options: Mapping[int, bytes]) -> int:
    """Bytes that `write_options` appends."""
    return 1 + sum(len(value) + 2 * max(1, -(-len(value) // MAX_PIECE)) for value in options.values())


def _write_pieces(code: int, value: bytes, out: bytearray) -> None:
    for start in range(0, len(value), MAX_PIECE):
        piece = value[start : start + MAX_PIECE]
        out.append(code)
        out.append(len(piece))
        out += piece


def parse_suboptions(option: int, value: bytes) -> dict[int, bytes]:
    """Sub-options by code; the last one of a code wins.

    Raises:
        OptionError: a sub-option runs over the end.
    """
    options: dict[int, bytes] = {}
    position, size = 0, len(value)
    while position < size:
        code = value[position]
        # Options 43 of several vendors pad and end like the outer field; option 82 has neither (RFC 3046).
        if option == Option.VENDOR_SPECIFIC and code in {PAD, END}:
            if code == END:
                break
            position += 1
            continue
        value_at = position + 2
        if value_at > size or value_at + value[value_at - 1] > size:
            raise OptionError(option, f"sub-option {code} runs over the end")
        position = value_at + value[value_at - 1]
        options[code] = value[value_at:position]
    return options


def write_suboptions(option: int, suboptions: Mapping[int, bytes]) -> bytes:
    """Sub-options in ascending order, without an End byte.

    Raises:
        EncodeError: a value over 255 bytes.
    """
    out = bytearray()
    for code in sorted(suboptions):
        value = suboptions[code]
        if len(value) > MAX_PIECE:
            raise EncodeError(f"option {option}, sub-option {code}", f"{len(value)} bytes, at most {MAX_PIECE} fit")
        out.append(code)
        out.append(len(value))
        out += value
    return bytes(out)
