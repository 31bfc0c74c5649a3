"""When a build is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.image import compress
from ironbell.image.debian import BuildError
from ironbell.image.manifest import Manifest, describe, digest_inputs, is_current, load, store


def _manifest(folder: Path) -> Manifest:
    (folder / "kernel").write_bytes(b"abc")
    return Manifest(
        kind="osie",
        architecture="amd64",
        suite="bookworm",
        inputs="1",
        kernel="6.1",
        unpacked_bytes=3,
        artefacts=[describe(folder / "kernel")],
        packages=[],
    )


def test_a_build_with_the_same_inputs_and_whole_files_is_current(tmp_path: Path) -> None:
    store(_manifest(tmp_path), tmp_path / "m.json")
    assert is_current(load(tmp_path / "m.json"), inputs="1", folder=tmp_path)


def test_other_inputs_or_a_missing_or_cut_file_ask_for_a_build(tmp_path: Path) -> None:
    manifest = _manifest(tmp_path)
    assert not is_current(manifest, inputs="2", folder=tmp_path)
    (tmp_path / "kernel").write_bytes(b"ab")
    assert not is_current(manifest, inputs="1", folder=tmp_path)
    (tmp_path / "kernel").unlink()
    assert not is_current(manifest, inputs="1", folder=tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"kind": 1}', b"\xff"])
def test_an_unreadable_manifest_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.json").write_bytes(content)
    assert load(tmp_path / "m.json") is None
    assert load(tmp_path / "none") is None


def test_the_digest_sees_content_names_and_words(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    first = digest_inputs(["x"], folders=[tmp_path])
    assert digest_inputs(["x"], folders=[tmp_path]) == first
    assert digest_inputs(["y"], folders=[tmp_path]) != first
    (tmp_path / "a").write_text("2")
    assert digest_inputs(["x"], folders=[tmp_path]) != first
    (tmp_path / "a").write_text("1")
    (tmp_path / "a").rename(tmp_path / "b")
    assert digest_inputs(["x"], folders=[tmp_path]) != first


@pytest.mark.parametrize("form", compress.FORMATS)
def test_every_compression_gives_the_disk_back(tmp_path: Path, form: str) -> None:
    import gzip

    from backports import zstd

    disk = bytes(3 << 20) + b"end" + bytes(5000)
    (tmp_path / "disk").write_bytes(disk)
    compress.write(tmp_path / "disk", tmp_path / "out", form)
    packed = (tmp_path / "out").read_bytes()
    read = {"zst": zstd.decompress, "gz": gzip.decompress, "none": bytes}[form]
    assert read(packed) == disk


def test_an_unknown_compression_names_the_known(tmp_path: Path) -> None:
    (tmp_path / "disk").touch()
    with pytest.raises(BuildError, match="zst, gz, none"):
        compress.write(tmp_path / "disk", tmp_path / "out", "rar")
