"""Container images made without a container engine."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from backports import zstd

from ironbell.image.debian import BuildError
from ironbell.image.kubernetes import oci, programs

NAME = "registry.example/pause:3.10.2"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF of no kind")
    return path


def _read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {name: opened.extractfile(name).read() for name in opened.getnames()}  # type: ignore[union-attr]


def _blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    data = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert descriptor["size"] == len(data)
    return data


def test_an_archive_holds_an_image_by_its_full_name(tmp_path: Path, program: Path) -> None:
    archive = tmp_path / "images.tar"
    oci.write([oci.Contents(NAME, (oci.Entry("pause", program),), entrypoint=("/pause",))], archive)
    files = _read(archive)
    (found,) = msgspec.json.decode(files["index.json"])["manifests"]
    assert found["annotations"]["io.containerd.image.name"] == NAME
    manifest = msgspec.json.decode(_blob(files, found))
    config = msgspec.json.decode(_blob(files, manifest["config"]))
    assert config["config"]["Entrypoint"] == ["/pause"]
    plain = zstd.decompress(_blob(files, manifest["layers"][0]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"]
    with tarfile.open(fileobj=io.BytesIO(plain)) as layer:
        member = layer.getmember("pause")
        assert (member.mode, member.uid, member.mtime) == (0o755, 0, 0)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path, program: Path) -> None:
    images = [oci.Contents(NAME, (oci.Entry("usr/bin/a", program), oci.Entry("lib", link="usr/lib")))]
    for name in ("one.tar", "two.tar"):
        oci.write(images, tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_two_images_of_one_content_share_its_layer(tmp_path: Path, program: Path) -> None:
    entry = (oci.Entry("pause", program),)
    oci.write([oci.Contents("a/b:1", entry), oci.Contents("a/c:1", entry)], tmp_path / "images.tar")
    with tarfile.open(tmp_path / "images.tar") as opened:
        names = opened.getnames()
    assert len(names) == len(set(names))


def _tree(root: Path) -> Path:
    for folder in ("usr/sbin", "usr/lib/x86_64-linux-gnu/xtables", "etc/alternatives"):
        (root / folder).mkdir(parents=True)
    (root / "usr/sbin/multi").write_bytes(b"#!/bin/sh\n")
    (root / "etc/alternatives/tables").symlink_to("/usr/sbin/multi")
    (root / "usr/sbin/tables").symlink_to("/etc/alternatives/tables")
    (root / "usr/sbin/tables-save").symlink_to("multi")
    (root / "usr/lib/x86_64-linux-gnu/xtables/libxt_a.so").write_bytes(b"plugin")
    return root


def test_a_program_with_several_names_is_copied_once(tmp_path: Path) -> None:
    tree = _tree(tmp_path)
    entries = {entry.path: entry for entry in programs.with_libraries(tree, ["tables", "tables-save"])}
    assert entries["usr/sbin/tables"].source == tree / "usr/sbin/multi"
    assert entries["usr/sbin/tables-save"].link == "/usr/sbin/tables"
    assert entries["usr/lib/x86_64-linux-gnu/xtables/libxt_a.so"].source is not None
    assert entries["lib"].link == "usr/lib"


def test_a_program_that_no_package_brought_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="conntrack"):
        programs.with_libraries(_tree(tmp_path), ["conntrack"])
