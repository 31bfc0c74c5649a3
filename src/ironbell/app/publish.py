"""Make files readable to `wire`: hard links (or copies) in its own folder, since it may read nothing else.

Publishing is repeated at every start and follows the source: changed files are replaced by rename, files that are gone
are removed. A machine that is downloading keeps the file it began with.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ironbell.base.errors import IronbellError, Retry


class PublishError(IronbellError):
    """A folder cannot be published."""

    reason = "CannotPublish"
    retry = Retry.NEVER


def publish(source: Path, target: Path) -> int:
    """Make `target` hold the same files as `source` (a folder, or one file) and return how many there are.

    Raises:
        PublishError: the source does not exist or cannot be read.
    """
    if not source.exists():
        raise PublishError(f"{source} does not exist and cannot be served")
    target.mkdir(parents=True, exist_ok=True, mode=0o755)
    files = [source] if source.is_file() else [path for path in sorted(source.rglob("*")) if path.is_file()]
    root = source.parent if source.is_file() else source
    wanted = set()
    try:
        for file in files:
            wanted.add(target / file.relative_to(root))
            place(file, target / file.relative_to(root))
        for stale in [path for path in target.rglob("*") if path.is_file() and path not in wanted]:
            stale.unlink()
    except OSError as error:
        raise PublishError(f"cannot publish {source}: {error}") from error
    return len(wanted)


def place(file: Path, target: Path) -> None:
    """Make `target` the same file, by rename; nothing is done if it already is.

    Raises:
        OSError: one of them cannot be read or written.
    """
    status = file.stat()
    if target.exists():
        there = target.stat()
        if os.path.samestat(there, status) or (there.st_size, there.st_mtime_ns) == (
            status.st_size,
            status.st_mtime_ns,
        ):
            return
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    if status.st_mode & 0o004 and not file.is_symlink():
        try:
            partial.hardlink_to(file)
        except OSError:
            shutil.copy2(file, partial)
    else:
        # a link would show the original's mode, which keeps others out
        shutil.copy2(file, partial)
        partial.chmod(0o644)
    partial.rename(target)
