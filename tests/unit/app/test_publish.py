"""Publishing: the target follows the source, and private files become readable copies, never links."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.app.site.service_folder import PublishError, publish
from ironbell.base.ownfolder import OwnFolder


def test_target_follows_source(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "sub").mkdir(parents=True)
    target.mkdir()
    folder = OwnFolder.open(target)
    (source / "kernel").write_text("1")
    (source / "sub" / "initrd").write_text("2")
    assert publish(source, folder) == 2
    assert (target / "sub" / "initrd").read_text() == "2"
    (source / "kernel").unlink()
    (source / "kernel").write_text("changed")
    (source / "sub" / "initrd").unlink()
    assert publish(source, folder) == 1
    assert (target / "kernel").read_text() == "changed"
    assert not (target / "sub").exists()
    folder.close()


def test_private_file_stays_private_and_its_copy_is_readable(tmp_path: Path) -> None:
    source = tmp_path / "image"
    source.write_text("x")
    source.chmod(0o600)
    (tmp_path / "target").mkdir()
    with OwnFolder.open(tmp_path / "target") as target:
        publish(source, target)
    assert source.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "target" / "image").stat().st_mode & 0o777 == 0o644


def test_missing_source_is_named(tmp_path: Path) -> None:
    with OwnFolder.open(tmp_path) as target, pytest.raises(PublishError, match="nothing-here"):
        publish(tmp_path / "nothing-here", target)
