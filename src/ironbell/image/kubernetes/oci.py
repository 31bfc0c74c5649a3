"""Container images without a container engine: one OCI archive that containerd imports.

Each image is one layer. The same content gives the same bytes, at any time and on any host.

Source: opencontainers/image-spec: image-layout.md, manifest.md, config.md, layer.md; containerd: images/annotations.go
(the full name of an image in an archive).
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from backports import zstd

_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"
_NAME = "io.containerd.image.name"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LEVEL = 6
_ZERO_TIME = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Entry:
    """One file of an image: a program or library from `source`, or a link to `link`."""

    path: str
    """Path in the image, without a leading slash."""
    source: Path | None = None
    link: str = ""


@dataclass(frozen=True)
class Contents:
    """An image to write."""

    reference: str
    entries: tuple[Entry, ...]
    entrypoint: tuple[str, ...] = field(default=())


def write(images: Sequence[Contents], target: Path, *, architecture: str = "amd64") -> None:
    """Write all images into one archive."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        manifests = [_add_image(archive, image, architecture) for image in images]
        _add(archive, "oci-layout", msgspec.json.encode({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}))


def layer(entries: Sequence[Entry]) -> bytes:
    """The uncompressed layer: folders before their content, all owned by root, without times."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folders = {str(parent) for entry in entries for parent in Path(entry.path).parents} - {"."}
        for name in sorted(folders | {"tmp"}):
            folder = _information(name, tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755)
            archive.addfile(folder)
        for entry in sorted(entries, key=lambda entry: entry.path):
            if entry.source is None:
                link = _information(entry.path, tarfile.SYMTYPE, mode=0o777)
                link.linkname = entry.link
                archive.addfile(link)
                continue
            data = entry.source.read_bytes()
            file = _information(entry.path, tarfile.REGTYPE, mode=0o755)
            file.size = len(data)
            archive.addfile(file, io.BytesIO(data))
    return stream.getvalue()


def _add_image(archive: tarfile.TarFile, image: Contents, architecture: str) -> dict[str, Any]:
    plain = layer(image.entries)
    settings: dict[int, int] = {
        zstd.CompressionParameter.compression_level: _LEVEL,
        zstd.CompressionParameter.nb_workers: 2,
    }
    packed = zstd.compress(plain, options=settings)
    config = _json(
        {
            "created": _ZERO_TIME,
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": [_PATH], "Entrypoint": list(image.entrypoint), "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(plain)]},
            "history": [{"created": _ZERO_TIME, "created_by": "ironbell image build"}],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _blob(archive, _CONFIG, config),
            "layers": [_blob(archive, _LAYER, packed)],
        }
    )
    platform = {"architecture": architecture, "os": "linux"}
    return {
        **_blob(archive, _MANIFEST, manifest),
        "platform": platform,
        "annotations": {
            _NAME: image.reference,
            "org.opencontainers.image.ref.name": image.reference.rpartition(":")[2],
        },
    }


def _blob(archive: tarfile.TarFile, kind: str, data: bytes) -> dict[str, Any]:
    digest = _digest(data)
    name = f"blobs/{digest.replace(':', '/')}"
    if name not in archive.getnames():
        _add(archive, name, data)
    return {"mediaType": kind, "digest": digest, "size": len(data)}


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    file = _information(name, tarfile.REGTYPE, mode=0o644)
    file.size = len(data)
    archive.addfile(file, io.BytesIO(data))


def _information(name: str, kind: bytes, *, mode: int) -> tarfile.TarInfo:
    information = tarfile.TarInfo(name)
    information.type, information.mode = kind, mode
    return information


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(document: Any) -> bytes:
    return msgspec.json.encode(document, order="deterministic")
