"""Compresses a finished disk, in one pass and without programs of the host."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

from backports import zstd

from ironbell.image.debian import BuildError

FORMATS = ("zst", "gz", "none")
_CHUNK_BYTES = 1 << 20
_ZSTD_LEVEL = 9
_GZIP_LEVEL = 6
_GZIP_WINDOW_BITS = 31


def write(source: Path, target: Path, form: str) -> None:
    """Compress one file into another, which is removed if that does not succeed; `none` copies and keeps holes.

    Raises:
        BuildError: the format is not known.
    """
    try:
        _write(source, target, form)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _write(source: Path, target: Path, form: str) -> None:
    if form == "none":
        _copy_sparse(source, target)
    elif form == "zst":
        parameters: dict[int, int] = {
            zstd.CompressionParameter.compression_level: _ZSTD_LEVEL,
            zstd.CompressionParameter.checksum_flag: 1,
            zstd.CompressionParameter.nb_workers: 2,
        }
        compressor = zstd.ZstdCompressor(options=parameters)
        compressor.set_pledged_input_size(source.stat().st_size)
        _stream(source, target, compressor.compress, compressor.flush)
    elif form == "gz":
        deflater = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        _stream(source, target, deflater.compress, deflater.flush)
    else:
        raise BuildError(f"--compress {form}: must be one of {', '.join(FORMATS)}")


def _stream(source: Path, target: Path, feed: Callable[[bytes], bytes], finish: Callable[[], bytes]) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(_CHUNK_BYTES):
            writer.write(feed(chunk))
        writer.write(finish())


def _copy_sparse(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("wb") as writer:
        while chunk := reader.read(_CHUNK_BYTES):
            if chunk.count(0) == len(chunk):
                writer.seek(len(chunk), 1)
            else:
                writer.write(chunk)
        writer.truncate(source.stat().st_size)
    shutil.copystat(source, target)
