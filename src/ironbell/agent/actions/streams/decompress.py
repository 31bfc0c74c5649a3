"""Decompress a stream on the fly: gzip, xz, zstd, bzip2, recognised by their first bytes.

The file's name does not matter. Several members, frames or streams one after the other are one file; zero padding
between and after them is allowed; an early end and a wrong checksum are errors.

Source: RFC 1952; RFC 8878; the .xz file format, section 2.1.1; libbzip2's manual.
"""

from __future__ import annotations

import bz2
import lzma
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Protocol, cast

from isal import igzip_lib

from ironbell.agent.actions.context import ActionError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK = 1 << 20
_HEAD = 6
# Frames made with --long=27 and below; more would need gigabytes of memory.
_WINDOW_LOG_MAX = 27
# xz -9 takes 65 MiB; a stream may require 4 GiB.
_XZ_MEMORY = 160 << 20
_NO_MEMORY = "Memory usage limit exceeded"
"""Message of the lzma module about a stream over the limit."""
_DAMAGE: tuple[type[Exception], ...] = (
    cast("type[Exception]", igzip_lib.IsalError),
    zstd.ZstdError,
    lzma.LZMAError,
    OSError,
    ValueError,
    EOFError,
)


class Format(Enum):
    """A compression format."""

    GZIP = "gzip"
    XZ = "xz"
    ZSTD = "zstd"
    BZIP2 = "bzip2"


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class CorruptStreamError(ActionError):
    """The compressed data is damaged or incomplete."""


def sniff(head: bytes) -> Format | None:
    """The format of data that starts like this; None for anything uncompressed."""
    if head.startswith(b"\x1f\x8b\x08"):
        return Format.GZIP
    if head.startswith(b"\xfd7zXZ\0"):
        return Format.XZ
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        return Format.ZSTD
    if head.startswith(b"BZh") and head[3:4].isdigit():
        return Format.BZIP2
    return None


def _decoder(kind: Format) -> _Decoder:
    decoder: _Decoder
    match kind:
        case Format.GZIP:
            decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        case Format.XZ:
            decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        case Format.ZSTD:
            decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX})
        case Format.BZIP2:
            decoder = bz2.BZ2Decompressor()
    return decoder


def expand(chunks: Iterable[bytes], kind: Format) -> Iterator[bytes]:
    """The decompressed bytes, at most 1 MiB at a time.

    Raises:
        CorruptStreamError: the data is not a valid stream of this format, or ends early.
    """
    decoder: _Decoder | None = None
    waiting = b""
    for chunk in chunks:
        data = waiting + chunk if waiting else chunk
        waiting = b""
        while data:
            if decoder is None:
                data = data.lstrip(b"\0")
                if len(data) < _HEAD:
                    waiting, data = data, b""
                    continue
                if sniff(data) is not kind:
                    raise CorruptStreamError(f"unexpected data follows the end of the {kind.value} stream")
                decoder = _decoder(kind)
            yield from _feed(decoder, data, kind)
            if not decoder.eof:
                break
            data, decoder = decoder.unused_data, None
    if decoder is not None:
        raise CorruptStreamError(f"the {kind.value} stream ends early: the file on the server is truncated")
    if waiting:
        raise CorruptStreamError(f"unexpected data follows the end of the {kind.value} stream")


def _feed(decoder: _Decoder, data: bytes, kind: Format) -> Iterator[bytes]:
    try:
        out = decoder.decompress(data, CHUNK)
        while out:
            yield out
            if decoder.eof or decoder.needs_input:
                return
            out = decoder.decompress(b"", CHUNK)
    except _DAMAGE as error:
        if str(error) == _NO_MEMORY:
            raise CorruptStreamError(
                f"the xz stream needs more than {_XZ_MEMORY >> 20} MiB of memory: compress it with a dictionary of at "
                "most 128 MiB (`xz -9` has 64 MiB)"
            ) from error
        raise CorruptStreamError(f"the {kind.value} stream is damaged: {error}") from error
