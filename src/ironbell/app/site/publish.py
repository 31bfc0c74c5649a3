"""Make files readable to the servers for machines, which may read nothing else: links or copies in their folder.

Publishing is repeated at every start and follows the source: changed files are replaced by rename, deleted files are
removed. A machine that is downloading keeps the file that it began with.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ownfolder import OwnFolder

_Tree: TypeAlias = "dict[str, Path | _Tree]"
"""Files and folders by name."""


class PublishError(IronbellError):
    """A folder cannot be published."""

    reason = "CannotPublish"
    retry = Retry.NEVER


def publish(source: Path, target: OwnFolder) -> int:
    """Make `target` contain the same files as `source` (a folder, or one file), and return their number.

    Raises:
        PublishError: the source does not exist or cannot be read.
    """
    if not source.exists():
        raise PublishError(f"{source} does not exist and cannot be served")
    files = [source] if source.is_file() else [path for path in sorted(source.rglob("*")) if path.is_file()]
    root = source.parent if source.is_file() else source
    tree: _Tree = {}
    for file in files:
        branch = tree
        for part in file.relative_to(root).parts[:-1]:
            below = branch.setdefault(part, {})
            assert isinstance(below, dict)  # noqa: S101 - a name is a file's or a folder's
            branch = below
        branch[file.name] = file
    try:
        _place(tree, target)
    except OSError as error:
        raise PublishError(f"cannot publish {source}: {error}") from error
    return len(files)


def _place(tree: _Tree, target: OwnFolder) -> None:
    for name, content in tree.items():
        if isinstance(content, Path):
            target.place(content, name)
        else:
            with target.sub(name) as folder:
                _place(content, folder)
    for name in target.names():
        if name not in tree:
            target.remove(name)
