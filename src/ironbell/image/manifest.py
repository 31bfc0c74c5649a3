"""What a build made, from what: the manifest beside the artefacts.

`inputs` is a digest of everything of ours that shapes the result (our files, options, package sources). A build whose
manifest carries the same digest and whose files still have their recorded sizes is current, so that a Makefile may
ask for it every time. New versions of Debian packages do not change the digest: a rebuild is asked for by leaving
`--if-changed` out.

Failure modes: an unreadable or foreign manifest counts as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ironbell.image.debian import Package

_CHUNK_BYTES = 1 << 20


class Artefact(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a build."""

    name: str
    sha256: str
    size_bytes: int


class PackageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One package inside."""

    name: str
    version: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A finished build. `unpacked_bytes` is what the content occupies once unpacked."""

    kind: str
    architecture: str
    suite: str
    inputs: str
    kernel: str
    unpacked_bytes: int
    artefacts: list[Artefact]
    packages: list[PackageEntry]
    python: str = ""
    distributions: dict[str, str] = {}
    kubernetes: str = ""
    """The release, where the image is a node's."""
    container_images: list[str] = []


def package_entries(packages: Sequence[Package]) -> list[PackageEntry]:
    """Packages in the form the manifest keeps."""
    return [PackageEntry(name=package.name, version=package.version) for package in packages]


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def digest_inputs(words: Iterable[str], *, folders: Iterable[Path]) -> str:
    """One digest over words (options, package names) and over all files below folders, but for compiled Python."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode() + b"\0")
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + bytes.fromhex(digest_file(path)))
    return digest.hexdigest()


def describe(path: Path) -> Artefact:
    """Name, digest and size of a finished file."""
    return Artefact(name=path.name, sha256=digest_file(path), size_bytes=path.stat().st_size)


def load(path: Path) -> Manifest | None:
    """The manifest of an earlier build; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def store(manifest: Manifest, path: Path) -> None:
    """Write a manifest; last of all files of a build, so that its presence means a whole build."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    temporary.replace(path)


def is_current(manifest: Manifest | None, *, inputs: str, folder: Path) -> bool:
    """Whether an earlier build still stands for these inputs, with all its files in place."""
    if manifest is None or manifest.inputs != inputs:
        return False
    paths = [(folder / artefact.name, artefact.size_bytes) for artefact in manifest.artefacts]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)
