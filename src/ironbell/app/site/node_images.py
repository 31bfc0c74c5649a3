"""The folder of `--node-images`: complete images are published to machines, and an index lists them.

An image is complete if its digest is the one in `NAME.sha256` beside it. A manifest that `ironbell image build` writes
last confirms that; any other file is read once. A file that is still being written matches neither, so no machine gets
an incomplete file.

Controllers read the index. An image is in it only while it is published: it is removed from the index before its file
is replaced or removed, and listed after the new one is in place.

Failure modes: if a folder cannot be read, the published files stay unchanged and the error is reported once; files that
are incomplete, or cannot be read or published, are listed in the index with the reason, and do not affect others.
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

REFRESH_INTERVAL_S = 5.0
"""Interval between two reads of the folder."""
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
    """Keeps a published folder equal to the user's; `refresh` may be called at any time, by one caller."""

    source: Path
    target: OwnFolder
    _results: dict[_Key, NodeImage | str] = field(default_factory=dict)
    """Each file as an image, or the reason why it is not served; kept until the file, its checksum or its manifest
    changes. So a process that has dropped its privileges still knows the files that it could read before."""
    _problem: str = ""

    async def run(self) -> None:
        """Follow the user's folder until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_INTERVAL_S)
            try:
                await asyncio.to_thread(self.refresh)
            except OSError as error:
                if str(error) != self._problem:
                    _log.warning("node images not published", folder=str(self.source), why=str(error))
                self._problem = str(error)
            else:
                self._problem = ""

    def refresh(self) -> NodeImages:
        """Publish complete images, and return them.

        Raises:
            OSError: a folder cannot be read or written.
        """
        old, new = self._read_index(), self._scan()
        listed = old.images if old is not None else ()
        kept = tuple(image for image in listed if image in new.images and self._is_placed(image))
        if kept != listed:
            self._write_index(NodeImages(images=kept, unfinished=new.unfinished))
        new = self._place(new)
        if new != old or kept != listed:
            self._write_index(new)
        published = {INDEX, *(image.file for image in new.images)}
        for name in self.target.names():
            if name not in published:
                self.target.remove(name)
        return new

    def _place(self, new: NodeImages) -> NodeImages:
        placed, unfinished = [], dict(new.unfinished)
        for image in new.images:
            try:
                self.target.place(self.source / image.file, image.file)
                placed.append(image)
            except OSError as error:
                unfinished[image.file] = f"it cannot be published: {os_problem(error)}"
        return NodeImages(images=tuple(placed), unfinished=unfinished)

    def _scan(self) -> NodeImages:
        images, unfinished, results = [], {}, {}
        for path in sorted(self.source.iterdir()):
            if path.name.startswith(".") or not path.name.endswith(_ENDINGS) or not path.is_file():
                continue
            try:
                key = path.name, tuple(map(_stamp_of, (path, _sum_of(path), _manifest_of(path))))
                result = results[key] = self._results.get(key) or _image_or_reason(path)
            except OSError as error:
                unreadable = Path(error.filename).name if error.filename else path.name
                result = f"{unreadable} cannot be read: {os_problem(error)}"
            if isinstance(result, NodeImage):
                images.append(result)
            else:
                unfinished[path.name] = result
        self._results = results
        return NodeImages(images=tuple(images), unfinished=unfinished)

    def _is_placed(self, image: NodeImage) -> bool:
        """Return whether the published file is still the user's file."""
        placed = self.target.entry(image.file)
        if placed is None or not stat.S_ISREG(placed.st_mode):
            return False
        return _stamp_in(placed)[1:] == _stamp(self.source / image.file)[1:]

    def _write_index(self, images: NodeImages) -> None:
        self.target.write(INDEX, msgspec.json.encode(images), mode=0o644)

    def _read_index(self) -> NodeImages | None:
        try:
            stored = self.target.read(INDEX, limit=_MOST_INDEX)
            return msgspec.json.decode(stored[0], type=NodeImages) if stored is not None else None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None


def _stamp(path: Path) -> _Stamp:
    return _stamp_in(path.stat())


def _stamp_in(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _stamp_of(path: Path) -> _Stamp | None:
    """The stamp of a file; None if it does not exist."""
    try:
        return _stamp(path)
    except FileNotFoundError:
        return None


def _sum_of(path: Path) -> Path:
    return path.with_name(path.name + _SUM)


def _manifest_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _image_or_reason(path: Path) -> NodeImage | str:
    """Return the image, or the reason why it is not served.

    Raises:
        OSError: the file or its checksum cannot be read.
    """
    size = path.stat().st_size
    try:
        words = _sum_of(path).read_bytes().decode(errors="replace").split()
    except FileNotFoundError:
        return f"{path.name}{_SUM} is missing beside it"
    expected = words[0].lower() if words else ""
    if len(expected) != 64 or any(digit not in "0123456789abcdef" for digit in expected):
        return f"{path.name}{_SUM} does not begin with a SHA-256 digest"
    if not _is_vouched_for(path, expected) and _digest(path) != expected:
        return f"its digest is not the one in {path.name}{_SUM}"
    return NodeImage(file=path.name, sha256=expected, size_bytes=size)


def _is_vouched_for(path: Path, expected: str) -> bool:
    """Return whether the manifest of a completed build has this file's size and digest."""
    try:
        manifest = msgspec.json.decode(_manifest_of(path).read_bytes(), type=_Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
    size = path.stat().st_size
    return any((item.name, item.sha256, item.size_bytes) == (path.name, expected, size) for item in manifest.artefacts)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
