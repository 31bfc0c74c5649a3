"""The folder of a service for machines, which the service reads and does not own.

The folder and its published content belong to the account that starts the service, usually root; the service's own
account may read them. The service writes to one folder in it, which belongs to the service and to which nothing else
ever writes. So an account that was taken over cannot redirect root at the next start. Sockets are bound before the
service drops its privileges.

Earlier releases gave the whole folder to the service's account, often `nobody`: such a folder is taken over at the
start, and its logs are given to the account that now writes them. Other files of that account are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import structlog

from ironbell.app.processes.privileges import Account
from ironbell.app.site.data_folder import DATABASE
from ironbell.app.site.node_images import NodeImageFolder
from ironbell.app.wire.config import (
    API_SOCKET,
    ARTEFACTS_FOLDER,
    IPXE_FOLDER,
    LOGS_FOLDER,
    LOGS_SOCKET,
    TOKEN_FILE,
    WORKFLOW_TOKEN_FILE,
)
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ownfolder import OwnFolder
from ironbell.contract.servers.node_images import FOLDER

_log = structlog.get_logger()

MODE = 0o750
"""The service's account has access by its group."""
_OWN_MODE = 0o700
"""The mode if the service runs as the account that started it."""
_PLANTABLE = (ARTEFACTS_FOLDER, IPXE_FOLDER, TOKEN_FILE, WORKFLOW_TOKEN_FILE, API_SOCKET, LOGS_SOCKET)
"""Names that may be links, created while the folder belonged to the service's account."""


class ServiceFolderError(IronbellError):
    """The folder of a service cannot be secured."""

    reason = "ServiceFolderUnusable"
    retry = Retry.NEVER


def open_service_folder(path: Path, account: Account, *, is_chosen: bool = False) -> OwnFolder:
    """Open the folder of a service, created or taken over if necessary, with a folder for logs that belongs to the
    account.

    A folder that a user has chosen may belong to something else, and is then rejected.

    Raises:
        ServiceFolderError: it cannot be created, its owners cannot be changed, or it belongs to something else.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=_OWN_MODE)
        folder = OwnFolder.open_foreign(path)
        try:
            if is_chosen and os.geteuid() == 0:
                _check_purpose(folder, account)
            _secure(folder, account)
            folder.give(LOGS_FOLDER, user=account.uid, group=account.gid)
        except BaseException:
            folder.close()
            raise
    except OSError as error:
        raise ServiceFolderError(
            f'cannot secure folder "{path}" for serving: {error.strerror or error}; choose another --data-dir'
        ) from error
    return folder


def _check_purpose(folder: OwnFolder, account: Account) -> None:
    """Check that a folder is new or a service's.

    Raises:
        ServiceFolderError: it has other content, which another owner or mode might make unusable.
    """
    names = folder.names()
    is_a_service_s = not names or LOGS_FOLDER in names or folder.status().st_gid == account.gid
    if DATABASE in names or not is_a_service_s:
        raise ServiceFolderError(
            f'folder "{folder.path}" has other content than files for machines; choose another --data-dir'
        )


def _secure(folder: OwnFolder, account: Account) -> None:
    """Let only this process write in the folder, and the account read it."""
    own, former = os.geteuid(), folder.status().st_uid
    if own != 0:
        if former == own:
            folder.allow(_OWN_MODE)
        return
    if former != own:
        folder.claim()
        _log.warning("folder taken over from a service's account", folder=str(folder.path), user_id=former)
    folder.allow(MODE, group=account.gid)
    if former != own:
        for name in _PLANTABLE:
            folder.remove(name)


def publish_all(
    folder: OwnFolder,
    *,
    published: Mapping[str, str],
    ipxe_dir: str,
    node_images: str,
    follower: Account | None = None,
) -> NodeImageFolder | None:
    """Publish folders of artefacts by name, custom iPXE binaries, and node images; return the folder of images, which
    can be followed: by this process, or by `follower` once the process has become it.

    Raises:
        PublishError, OSError: a file cannot be read.
    """
    images: NodeImageFolder | None = None
    with folder.sub(ARTEFACTS_FOLDER) as artefacts:
        for name, source in published.items():
            with artefacts.sub(name) as place:
                count = publish(Path(source), place)
            _log.info("artefacts published", name=name, source=source, files=count)
        if node_images:
            target = artefacts.take(FOLDER)
            images = NodeImageFolder(Path(node_images).absolute(), target)
            node_images_ = images.refresh()
            if follower is not None:
                target.give_folder(user=follower.uid, group=follower.gid)
            _log.info("node images published", folder=node_images, files=len(node_images_.images))
    if ipxe_dir:
        with folder.sub(IPXE_FOLDER) as ipxe:
            publish(Path(ipxe_dir), ipxe)
    return images


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
