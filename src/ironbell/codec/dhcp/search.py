"""Option 119, domain search list: names as DNS labels, with compression when reading.

Source: RFC 3397; RFC 1035, sections 3.1 and 4.1.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.codec.dhcp.errors import EncodeError, OptionError
from ironbell.codec.dhcp.numbers import Option

_MAX_LABEL = 63
_MAX_NAME = 255
_POINTER = 0xC0


def search_bytes(domains: Iterable[str]) -> bytes:
    """The option's value, without compression.

    Raises:
        EncodeError: a label is empty or over 63 bytes, a name over 255, or not ASCII.
    """
    out = bytearray()
    for domain in domains:
        name = bytearray()
        for label in domain.rstrip(".").split("."):
            raw = label.encode("ascii", "replace")
            if not 1 <= len(raw) <= _MAX_LABEL or not label.isascii():
                raise EncodeError(f"option {int(Option.DOMAIN_SEARCH)}", f"{domain!r} is not a domain name")
            name.append(len(raw))
            name += raw
        name.append(0)
        if len(name) > _MAX_NAME:
            raise EncodeError(f"option {int(Option.DOMAIN_SEARCH)}", f"{domain!r} is longer than {_MAX_NAME} bytes")
        out += name
    return bytes(out)


def parse_search(value: bytes) -> tuple[str, ...]:
    """The names of an option's value.

    Raises:
        OptionError: a label or pointer leads outside, pointers go round in circles, a name is too long.
    """
    names = []
    position = 0
    while position < len(value):
        name, position = _read_name(value, position)
        names.append(name)
    return tuple(names)


def _read_name(value: bytes, start: int) -> tuple[str, int]:
    """One name and the position behind it."""
    labels: list[str] = []
    position, behind, size = start, -1, 0
    while True:
        if position >= len(value):
            raise OptionError(Option.DOMAIN_SEARCH, "a name is cut")
        length = value[position]
        if length == 0:
            return ".".join(labels), behind if behind >= 0 else position + 1
        if length >= _POINTER:
            target = int.from_bytes(value[position : position + 2], "big") & 0x3FFF
            # A pointer only ever leads backwards, so following pointers ends.
            if position + 2 > len(value) or target >= position:
                raise OptionError(Option.DOMAIN_SEARCH, f"the pointer at byte {position} leads forward")
            behind = behind if behind >= 0 else position + 2
            position = target
            size += 1
        elif length > _MAX_LABEL:
            raise OptionError(Option.DOMAIN_SEARCH, f"byte {position} is not a label")
        else:
            label = value[position + 1 : position + 1 + length]
            labels.append(label.decode("ascii", "backslashreplace"))
            position += 1 + length
            size += 1 + length
        if size > _MAX_NAME:
            raise OptionError(Option.DOMAIN_SEARCH, "a name is longer than 255 bytes")
