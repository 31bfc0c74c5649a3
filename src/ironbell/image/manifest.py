"""The manifest beside a build's artefacts: records the artefacts and their inputs. Checks of the place for both.

`inputs` is a digest of everything of ours that shapes the result (our files, options, package sources). A build whose
manifest carries the same digest and whose files still have their recorded sizes is current, so that a Makefile may
build every time. New versions of Debian packages do not change the digest: leave `--if-changed` out to rebuild.

Failure modes: an unreadable or foreign manifest is treated as missing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ironbell.image.debian import BuildError, Package

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
    """Kubernetes release of a node's image; empty for a plain system."""
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
    """One digest over words (options, package names) and over all files below folders, except compiled Python."""
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
    """The manifest of an earlier build; None if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def store(manifest: Manifest, path: Path) -> None:
    """Write a manifest, as the last file of a build, so that its presence means a complete build."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    temporary.replace(path)


def is_current(manifest: Manifest | None, *, inputs: str, folder: Path) -> bool:
    """Return whether an earlier build is current for these inputs, with all its files in place."""
    if manifest is None or manifest.inputs != inputs:
        return False
    paths = [(folder / artefact.name, artefact.size_bytes) for artefact in manifest.artefacts]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def check_folder(folder: Path) -> None:
    """Check that a build can write into a folder, which need not exist yet.

    Raises:
        BuildError: a file is in its way, or the folder cannot be written.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise BuildError(f"--output: {existing} is a file, not a folder; choose another path")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise BuildError(f"--output: {existing} cannot be written; choose another path, or run as root or with sudo")


def check_file(file: Path, manifest: Path) -> None:
    """Check that a build can write a file, in place of an earlier build at most.

    Raises:
        BuildError: its folder cannot be written, or a file that is not an earlier build has its place.
    """
    if file.is_dir():
        raise BuildError(f"--output: {file} is a folder; give the file to write, such as {file / 'debian.raw.zst'}")
    check_folder(file.parent)
    if os.path.lexists(file) and not manifest.is_file():
        raise BuildError(
            f"--output: {file} exists, and has no manifest beside it that records a build; it is not replaced. "
            "Remove it, or choose another path"
        )
