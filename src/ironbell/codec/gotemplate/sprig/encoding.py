"""Encodings and checksums. A text that cannot be decoded becomes the decoder's message, as sprig has it.

Source: Masterminds/sprig v3.3.0: strings.go, crypto.go; golang/go: src/encoding/base64, src/encoding/base32.
"""

from __future__ import annotations

import base64
import hashlib
import zlib

from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.values import decode, encode

ENCODING = Library()
_add = ENCODING.add
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class CorruptInput(Exception):  # noqa: N818 - what Go calls it
    """The offset of the first byte that is wrong."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


_add("b64enc", P.STRING)(lambda text: base64.b64encode(encode(text)).decode())


@_add("b64dec", P.STRING)
def _b64dec(text: str) -> str:
    try:
        return decode(decode_base64(encode(text)))
    except CorruptInput as error:
        return f"illegal base64 data at input byte {error.offset}"


_add("b32enc", P.STRING)(lambda text: base64.b32encode(encode(text)).decode())


@_add("b32dec", P.STRING)
def _b32dec(text: str) -> str:
    try:
        return decode(_decode_base32(encode(text)))
    except CorruptInput as error:
        return f"illegal base32 data at input byte {error.offset}"


def decode_base64(data: bytes) -> bytes:
    """Go's decoder: line breaks are skipped anywhere, the last quantum must be padded.

    Raises:
        CorruptInput: with the offset that Go names.
    """
    digits = bytearray()
    count, position = 0, 0
    while position < len(data):
        byte = data[position]
        if byte in _BASE64:
            digits.append(byte)
            count = (count + 1) % 4
        elif byte not in b"\r\n":
            if byte != 0x3D or count < 2:
                raise CorruptInput(position)
            _check_padding(data, position + 1, count)
            return base64.b64decode(bytes(digits) + b"=" * (4 - count))
        position += 1
    if count:
        raise CorruptInput(len(data) - count)
    return base64.b64decode(bytes(digits))


def _check_padding(data: bytes, position: int, count: int) -> None:
    """Check the text behind the first padding character; `count` is the number of digits before it."""
    if count == 2:
        position = _skip_breaks(data, position)
        if position == len(data):
            raise CorruptInput(position)
        if data[position] != 0x3D:
            raise CorruptInput(position - 1)
        position += 1
    position = _skip_breaks(data, position)
    if position < len(data):
        raise CorruptInput(position)


def _skip_breaks(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in b"\r\n":
        position += 1
    return position


def _decode_base32(data: bytes) -> bytes:
    """Go's decoder, which ignores line breaks and the bits left over at the end.

    Raises:
        CorruptInput: with the offset that Go names.
    """
    clean = bytes(byte for byte in data if byte not in b"\r\n")
    values: list[int] = []
    for position, byte in enumerate(clean):
        count = len(values) % 8
        behind = clean[position + 1 :]
        if byte == 0x3D and count >= 2 and len(behind) < 8:
            if len(behind) + count < 7:
                raise CorruptInput(len(clean))
            for index, other in enumerate(behind[: 7 - count]):
                if other != 0x3D:
                    raise CorruptInput(position + index)
            if count in (3, 6):
                raise CorruptInput(position)
            return _bytes_of(values)
        if byte not in _BASE32:
            raise CorruptInput(position)
        values.append(_BASE32.index(byte))
    if len(values) % 8:
        raise CorruptInput(len(clean) - len(values) % 8)
    return _bytes_of(values)


def _bytes_of(values: list[int]) -> bytes:
    """Five bits of each value, packed; bits that make no whole byte of a quantum are dropped."""
    result = bytearray()
    for start in range(0, len(values), 8):
        bits = "".join(f"{value:05b}" for value in values[start : start + 8])
        result += bytes(int(bits[index : index + 8], 2) for index in range(0, len(bits) // 8 * 8, 8))
    return bytes(result)


_add("sha1sum", P.STRING)(lambda text: hashlib.sha1(encode(text), usedforsecurity=False).hexdigest())
_add("sha256sum", P.STRING)(lambda text: hashlib.sha256(encode(text)).hexdigest())
_add("sha512sum", P.STRING)(lambda text: hashlib.sha512(encode(text)).hexdigest())
_add("adler32sum", P.STRING)(lambda text: str(zlib.adler32(encode(text))))
