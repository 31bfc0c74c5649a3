"""Reads from a program or library which shared libraries it needs.

Used to carry exactly the libraries that the kept programs need. Works for any architecture of either word size in
little-endian order, on any host, without running or loading the file.

Failure modes: a file that is not such an ELF file needs nothing; a damaged one is a `ValueError`.

Source: System V Application Binary Interface, chapters 4 and 5 (ELF header, program header, dynamic section).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB = 1, 5
_LITTLE_ENDIAN = 1
_HEADERS = {1: struct.Struct("<16xHHIIIIIHHH"), 2: struct.Struct("<16xHHIQQQIHHH")}
_DYNAMIC_ENTRY = {1: struct.Struct("<iI"), 2: struct.Struct("<qQ")}


@dataclass(frozen=True, slots=True)
class _Segment:
    type: int
    offset: int
    address: int
    size: int


def needed(data: bytes) -> tuple[str, ...]:
    """Names of the libraries in the dynamic section, and the loader's path where the file has one.

    Raises:
        ValueError: the file is marked as ELF, and its tables point outside of it.
    """
    if data[:4] != b"\x7fELF" or len(data) < 6 or data[4] not in _HEADERS or data[5] != _LITTLE_ENDIAN:
        return ()
    try:
        segments = _segments(data)
        return tuple(_interpreter(data, segments) + _libraries(data, segments))
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"damaged ELF file: {error}") from error


def _segments(data: bytes) -> list[_Segment]:
    word = data[4]
    _, _, _, _, table, _, _, _, entry_size, count = _HEADERS[word].unpack_from(data)
    segments = []
    for index in range(count):
        start = table + index * entry_size
        if word == 2:
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, start)
        else:
            kind, offset, address, _, size = struct.unpack_from("<IIIII", data, start)
        segments.append(_Segment(kind, offset, address, size))
    return segments


def _interpreter(data: bytes, segments: list[_Segment]) -> list[str]:
    return [_text(data, segment.offset) for segment in segments if segment.type == _PT_INTERP]


def _libraries(data: bytes, segments: list[_Segment]) -> list[str]:
    entry = _DYNAMIC_ENTRY[data[4]]
    offsets: list[int] = []
    strings = 0
    for segment in segments:
        if segment.type != _PT_DYNAMIC:
            continue
        for start in range(segment.offset, segment.offset + segment.size, entry.size):
            tag, value = entry.unpack_from(data, start)
            if tag == _DT_NEEDED:
                offsets.append(value)
            elif tag == _DT_STRTAB:
                strings = _file_offset(segments, value)
            elif tag == 0:
                break
    return [_text(data, strings + offset) for offset in offsets]


def _file_offset(segments: list[_Segment], address: int) -> int:
    for segment in segments:
        if segment.type == _PT_LOAD and segment.address <= address < segment.address + segment.size:
            return address - segment.address + segment.offset
    raise IndexError(f"address {address:#x} lies in no segment")


def _text(data: bytes, start: int) -> str:
    end = data.index(b"\0", start)
    return data[start:end].decode()
