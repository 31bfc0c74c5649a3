"""The folder of `--node-images`: complete images are published to machines, and an index says which there are.

An image is complete if its digest is the one in `NAME.sha256` beside it. A manifest that `ironbell image build` has
written last vouches for that; any other file is read once. A file that is still being written matches neither, so
nobody is ever served a part of one.

The index is what controllers read. An image is in it only while it is published: it is taken out before its file is
replaced or removed, and listed after the new one is in place.

Failure modes: a folder that cannot be read leaves what is published as it is and is reported once; files that are not
complete, or cannot be read or published, are listed in the index with the reason, and keep no other from being served.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import structlog

from ironbell.base.errors import os_problem
from ironbell.base.ownfolder import OwnFolder
from ironbell.contract.servers.node_images import INDEX, NodeImage, NodeImages

_log = structlog.get_logger()

LOOK_S = 5.0
"""How often the folder is looked at."""
_SUM = ".sha256"
_ENDINGS = (".raw.zst", ".raw.gz", ".raw.xz", ".raw")
_MOST_INDEX = 16 << 20


class _Artefact(msgspec.Struct, frozen=True):
    name: str
    sha256: str
    size_bytes: int


class _Manifest(msgspec.Struct, frozen=True):
    artefacts: tuple[_Artefact, ...] = ()


_Stamp = tuple[int, int, int]
_Key = tuple[str, tuple[_Stamp | None, ...]]


@dataclass
class NodeImageFolder:
    """Keeps a published folder like the user's; `refresh` may be called at any time, by one caller."""

    source: Path
    target: OwnFolder
    _verdicts: dict[_Key, NodeImage | str] = field(default_factory=dict)
    """Each file as an image, or why it is not served: kept until the file, its check sum or its manifest changes. So a
    process that has given its privileges up goes on with what it could read before."""
    _trouble: str = ""

    async def run(self) -> None:
        """Follow the user's folder until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await asyncio.to_thread(self.refresh)
            except OSError as error:
                if str(error) != self._trouble:
                    _log.warning("images of nodes not published", folder=str(self.source), why=str(error))
                self._trouble = str(error)
            else:
                self._trouble = ""

    def refresh(self) -> NodeImages:
        """Publish what is complete, and return what is published.

        Raises:
            OSError: a folder cannot be read or written.
        """
        before, found = self._read_index(), self._look()
        listed = before.images if before is not None else ()
        kept = tuple(image for image in listed if image in found.images and self._is_placed(image))
        if kept != listed:
            self._write_index(NodeImages(images=kept, unfinished=found.unfinished))
        found = self._place(found)
        if found != before or kept != listed:
            self._write_index(found)
        wanted = {INDEX, *(image.file for image in found.images)}
        for name in self.target.names():
            if name not in wanted:
                self.target.remove(name)
        return found

    def _place(self, found: NodeImages) -> NodeImages:
        placed, unfinished = [], dict(found.unfinished)
        for image in found.images:
            try:
                self.target.place(self.source / image.file, image.file)
                placed.append(image)
            except OSError as error:
                unfinished[image.file] = f"it cannot be published: {os_problem(error)}"
        return NodeImages(images=tuple(placed), unfinished=unfinished)

    def _look(self) -> NodeImages:
        images, unfinished, verdicts = [], {}, {}
        for path in sorted(self.source.iterdir()):
            if path.name.startswith(".") or not path.name.endswith(_ENDINGS) or not path.is_file():
                continue
            try:
                key = path.name, tuple(map(_stamp_of, (path, _sum_of(path), _manifest_of(path))))
                verdict = verdicts[key] = self._verdicts.get(key) or _verdict(path)
            except OSError as error:
                unreadable = Path(error.filename).name if error.filename else path.name
                verdict = f"{unreadable} cannot be read: {os_problem(error)}"
            if isinstance(verdict, NodeImage):
                images.append(verdict)
            else:
                unfinished[path.name] = verdict
        self._verdicts = verdicts
        return NodeImages(images=tuple(images), unfinished=unfinished)

    def _is_placed(self, image: NodeImage) -> bool:
        """Whether what is published is still the user's file."""
        placed = self.target.entry(image.file)
        if placed is None or not stat.S_ISREG(placed.st_mode):
            return False
        return _stamp_in(placed)[1:] == _stamp(self.source / image.file)[1:]

    def _write_index(self, images: NodeImages) -> None:
        self.target.write(INDEX, msgspec.json.encode(images), mode=0o644)

    def _read_index(self) -> NodeImages | None:
        try:
            found = self.target.read(INDEX, limit=_MOST_INDEX)
            return msgspec.json.decode(found[0], type=NodeImages) if found is not None else None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None


def _stamp(path: Path) -> _Stamp:
    return _stamp_in(path.stat())


def _stamp_in(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _stamp_of(path: Path) -> _Stamp | None:
    """The stamp of a file; None if there is none."""
    try:
        return _stamp(path)
    except FileNotFoundError:
        return None


def _sum_of(path: Path) -> Path:
    return path.with_name(path.name + _SUM)


def _manifest_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _verdict(path: Path) -> NodeImage | str:
    """The image, or why it is not served.

    Raises:
        OSError: the file or its check sum cannot be read.
    """
    size = path.stat().st_size
    try:
        words = _sum_of(path).read_bytes().decode(errors="replace").split()
    except FileNotFoundError:
        return f"there is no {path.name}{_SUM} beside it"
    expected = words[0].lower() if words else ""
    if len(expected) != 64 or any(digit not in "0123456789abcdef" for digit in expected):
        return f"{path.name}{_SUM} does not begin with a SHA-256 digest"
    if not _is_vouched_for(path, expected) and _digest(path) != expected:
        return f"its digest is not the one in {path.name}{_SUM}"
    return NodeImage(file=path.name, sha256=expected, size_bytes=size)


def _is_vouched_for(path: Path, expected: str) -> bool:
    """Whether the manifest of a finished build has this file's size and digest."""
    try:
        made = msgspec.json.decode(_manifest_of(path).read_bytes(), type=_Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    size = path.stat().st_size
    return any((one.name, one.sha256, one.size_bytes) == (path.name, expected, size) for one in made.artefacts)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
