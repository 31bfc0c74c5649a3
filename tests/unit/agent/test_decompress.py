"""Decompression of streams cut anywhere, and of anything at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.agent.actions.streams.decompress import CorruptStreamError, Format, expand, sniff

COMPRESSORS = {
    Format.GZIP: lambda data: gzip.compress(data, 1),
    Format.XZ: lambda data: lzma.compress(data, preset=0),
    Format.ZSTD: lambda data: zstd.compress(data, 1),
    Format.BZIP2: lambda data: bz2.compress(data, 1),
}
DATA = bytes(3000) + bytes(range(256)) * 40 + b"end"


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("kind", Format)
@given(size=st.integers(1, 400), members=st.integers(1, 3), padding=st.integers(0, 20))
@settings(max_examples=25, deadline=None)
def test_how_the_data_is_cut_does_not_matter(kind, size, members, padding):
    packed = COMPRESSORS[kind](DATA) * members + bytes(padding)
    assert sniff(packed) is kind
    assert b"".join(expand(pieces(packed, size), kind)) == DATA * members


@pytest.mark.parametrize("kind", Format)
@given(cut=st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_an_early_end_is_always_noticed(kind, cut):
    packed = COMPRESSORS[kind](DATA)
    with pytest.raises(CorruptStreamError):
        list(expand(pieces(packed[:-cut], 100), kind))


@pytest.mark.parametrize("kind", Format)
@given(st.data())
@settings(max_examples=40, deadline=None)
def test_damage_gives_an_error_or_the_same_data(kind, data):
    packed = bytearray(COMPRESSORS[kind](DATA))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    try:
        found = b"".join(expand([bytes(packed)], kind))
    except CorruptStreamError:
        return
    # Header fields such as a time or an unused flag may change without harm; zstd's default frames carry no check sum.
    assert found == DATA or kind is Format.ZSTD


@given(st.binary(max_size=300))
def test_any_bytes_are_expanded_or_refused(data):
    for kind in Format:
        try:
            list(expand([data], kind))
        except CorruptStreamError:
            continue


def test_a_large_hole_is_expanded_in_small_pieces():
    packed = zstd.compress(bytes(50 << 20), 1)
    assert max(len(piece) for piece in expand([packed], Format.ZSTD)) <= 1 << 20


def test_skippable_zstd_frames_are_skipped():
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    assert sniff(skippable) is Format.ZSTD
    assert b"".join(expand([skippable + zstd.compress(DATA)], Format.ZSTD)) == DATA


def xz_with_dictionary(code: int) -> bytes:
    """A stream that says how large a dictionary it needs: 40 is 4 GiB (the .xz file format, section 5.3.1)."""
    packed = bytearray(lzma.compress(DATA, preset=0))
    header, end = 12, 12 + (packed[12] + 1) * 4
    assert packed[header + 2 : header + 4] == b"\x21\x01"
    packed[header + 4] = code
    packed[end - 4 : end] = zlib.crc32(packed[header : end - 4]).to_bytes(4, "little")
    return bytes(packed)


def test_an_xz_stream_that_wants_gigabytes_is_refused_with_the_remedy():
    for code in (40, 39, 36, 31):
        with pytest.raises(CorruptStreamError, match=r"needs more than 160 MiB of memory: compress it with"):
            list(expand([xz_with_dictionary(code)], Format.XZ))


def test_every_preset_of_xz_is_expanded():
    assert b"".join(expand([lzma.compress(DATA, preset=9 | lzma.PRESET_EXTREME)], Format.XZ)) == DATA
    assert b"".join(expand([xz_with_dictionary(30)], Format.XZ)) == DATA
