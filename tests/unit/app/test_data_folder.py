"""The data folder at start: closed to others, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ironbell.app.site.data_folder import DataFolderError, prepare_data_folder

OTHER = 60771


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One that a site has run in."""
    made = tmp_path / "site"
    (made / "pki").mkdir(parents=True, mode=0o700)
    for name in ("lock", "api.db", "tokens.json", "storage.key", "pki/ca.key", "pki/ca.crt", "pki/sa.key"):
        (made / name).touch(mode=0o600)
    made.chmod(0o700)
    return made


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_folder_that_is_as_it_should_be_stays_so(folder: Path) -> None:
    prepare_data_folder(folder)
    assert mode(folder) == 0o700


def test_a_new_folder_is_closed_to_others(tmp_path: Path) -> None:
    prepare_data_folder(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


@pytest.mark.parametrize("old", [0o755, 0o750, 0o711, 0o777])
def test_the_folder_of_a_site_is_closed_to_others(folder: Path, old: int) -> None:
    folder.chmod(old)
    prepare_data_folder(folder)
    assert mode(folder) == 0o700


def test_a_folder_with_nothing_but_files_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "lab.yaml").touch()
    folder.chmod(0o755)
    prepare_data_folder(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("old", [0o755, 0o1777])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, old: int) -> None:
    """Such as /etc, which nobody could read any more, or /tmp."""
    folder = tmp_path / "etc"
    (folder / "systemd").mkdir(parents=True)
    folder.chmod(old)
    with pytest.raises(DataFolderError, match=rf"do not belong to a site; .* run `chmod 700 {folder}`"):
        prepare_data_folder(folder)
    assert mode(folder) == old


@pytest.mark.parametrize("name", ["tokens.json", "storage.key", "pki/ca.key", "pki/sa.key", "pki"])
@pytest.mark.parametrize("more", [0o040, 0o004, 0o002])
def test_credentials_that_others_may_read_or_write_are_refused(folder: Path, name: str, more: int) -> None:
    path = folder / name
    path.chmod(mode(path) | more)
    remedy = "chmod 700" if name == "pki" else "chmod 600"
    with pytest.raises(DataFolderError, match=rf"{path} is open to other accounts .*; run `{remedy} {path}`"):
        prepare_data_folder(folder)


@pytest.mark.root
@pytest.mark.parametrize("name", [".", "tokens.json", "storage.key", "api.db", "pki", "pki/ca.key", "pki/sa.key"])
def test_what_belongs_to_another_account_is_refused(folder: Path, name: str) -> None:
    os.chown(folder / name, OTHER, OTHER)
    with pytest.raises(DataFolderError, match=rf'{folder / name} belongs to account "{OTHER}", which may have'):
        prepare_data_folder(folder)


@pytest.mark.root
def test_a_link_to_a_file_of_another_account_is_refused(folder: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    forged.touch(mode=0o600)
    os.chown(forged, OTHER, OTHER)
    (folder / "tokens.json").unlink()
    (folder / "tokens.json").symlink_to(forged)
    with pytest.raises(DataFolderError, match=r"tokens\.json belongs to account"):
        prepare_data_folder(folder)


@pytest.mark.root
def test_the_command_ends_with_one_line(folder: Path) -> None:
    os.chown(folder / "tokens.json", OTHER, OTHER)
    command = [sys.executable, "-m", "ironbell.cli.main", "up", "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f'ironbell: {folder}/tokens.json belongs to account "{OTHER}", which may have replaced the site\'s keys, and '
        f'not to "root"; restore it from a backup, or run `chown root {folder}/tokens.json` if you know the reason\n'
    )
