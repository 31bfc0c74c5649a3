"""The log file of a site: bounded, private, and no link to another file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironbell.app.processes.log_file import LogFile


def test_it_is_moved_aside_at_its_limit_while_others_write(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "up.log", limit_bytes=100)
    assert not log.rotate(), "there is none yet"
    with log.takes_output():
        os.write(2, b"a" * 60)
        assert not log.rotate()
        os.write(1, b"b" * 60)
        assert log.rotate()
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    assert log.older.read_bytes() == b"a" * 60 + b"b" * 60
    assert log.path.read_text() == "child\n"
    for path in (log.path, log.older):
        assert path.stat().st_mode & 0o777 == 0o600
    log.path.write_bytes(b"c" * 100)
    assert log.rotate()
    assert log.older.read_bytes() == b"c" * 100


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "up.log").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic links"), LogFile(tmp_path / "up.log").takes_output():
        pass
    assert (tmp_path / "other").read_text() == "kept"


def test_output_is_back_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        os.write(1, b"inside")
        raise RuntimeError

    with pytest.raises(RuntimeError), LogFile(tmp_path / "up.log").takes_output():
        fail()
    os.write(1, b"outside")
    assert capfd.readouterr().out == "outside"
