"""Where a build is to write: checked before the build, which takes minutes."""

from __future__ import annotations

import os
from pathlib import Path

from ironbell.image.debian import BuildError


def check_folder(folder: Path) -> None:
    """Check that a build can write into a folder, which need not exist yet.

    Raises:
        BuildError: a file is in its way, or it cannot be written.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir():
        raise BuildError(f"--output: {there} is a file, and no folder; choose another path")
    if not os.access(there, os.W_OK | os.X_OK):
        raise BuildError(f"--output: {there} cannot be written; choose another path, or run as root or with sudo")


def check_file(file: Path, manifest: Path) -> None:
    """Check that a build can write a file, in place of an earlier build at most.

    Raises:
        BuildError: its folder cannot be written, or something else than an earlier build has its place.
    """
    if file.is_dir():
        raise BuildError(f"--output: {file} is a folder; give the file to write, such as {file / 'debian.raw.zst'}")
    check_folder(file.parent)
    if os.path.lexists(file) and not manifest.is_file():
        raise BuildError(
            f"--output: {file} exists, and no manifest beside it says that it was built here; it is not replaced. "
            "Remove it, or choose another path"
        )
