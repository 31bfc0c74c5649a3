"""The archive that the kernel unpacks, and the reader of ELF files."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.osie import cpio, elf
from support.skips import needs_program


def _make_tree(root: Path) -> None:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/tool").write_bytes(b"#!/bin/sh\n")
    (root / "usr/bin/tool").chmod(0o755)
    (root / "bin").symlink_to("usr/bin")
    (root / "empty").touch()


def test_two_archives_of_one_tree_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        _make_tree(tmp_path / name)
    assert b"".join(cpio.archive(tmp_path / "a")) == b"".join(cpio.archive(tmp_path / "b"))


@needs_program("cpio")
def test_cpio_reads_the_archive_back(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    _make_tree(tmp_path / "tree")
    (tmp_path / "out").mkdir()
    archive = b"".join(cpio.archive(tmp_path / "tree"))
    assert len(archive) % 4 == 0
    subprocess.run(["cpio", "-i", "--quiet", "--no-preserve-owner"], input=archive, cwd=tmp_path / "out", check=True)
    assert (tmp_path / "out/bin/tool").read_bytes() == b"#!/bin/sh\n"
    assert (tmp_path / "out/usr/bin/tool").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out/bin").readlink() == Path("usr/bin")


def test_a_certificate_can_be_appended_as_an_archive_of_its_own() -> None:
    archive = cpio.member("etc/ironbell/ca.pem", b"abc") + cpio.trailer()
    assert archive.startswith(b"070701")
    assert len(archive) % 4 == 0


def test_a_file_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="4 GiB"):
        cpio.header("big", inode=1, mode=0o100644, size=1 << 32)


def test_says_what_a_program_needs() -> None:
    wanted = elf.needed(Path(sys.executable).resolve().read_bytes())
    assert any(name.startswith("libc.so") for name in wanted) or wanted == ()


def test_what_is_no_program_needs_nothing() -> None:
    assert elf.needed(b"#!/bin/sh\n") == ()
    assert elf.needed(b"") == ()


@given(st.binary(max_size=200))
def test_damaged_programs_are_refused_not_misread(data: bytes) -> None:
    for word in (1, 2):
        with contextlib.suppress(ValueError):
            elf.needed(b"\x7fELF" + bytes([word, 1]) + data)
