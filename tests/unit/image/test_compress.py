"""Compressing a disk."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ironbell.image import compress


def _interrupted(_chunk: bytes) -> bytes:
    raise KeyboardInterrupt


def test_an_interruption_leaves_no_part_of_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk.raw").write_bytes(b"content")
    monkeypatch.setattr(compress.zlib, "compressobj", lambda *_: SimpleNamespace(compress=_interrupted, flush=bytes))
    with pytest.raises(KeyboardInterrupt):
        compress.write(tmp_path / "disk.raw", tmp_path / ".debian.raw.gz.new", "gz")
    assert [path.name for path in tmp_path.iterdir()] == ["disk.raw"]
