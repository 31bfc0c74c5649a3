"""The settings of installations, and the default image of a Machine, which the site serves for its version. Pure.

An installation begins only once its image can be fetched, so that no server is wiped for a missing image.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec

from ironbell.contract.servers.node_images import ARCHITECTURE, NO_IMAGES, ImageSource, NodeImages, file_name
from ironbell.contract.servers.racks import INSTALLS_PER_RACK
from ironbell.kube.decision import Fact, Need, Query

MAX_INDEX_AGE_S: Final = 20.0
"""Maximum age of the index that a decision relies on."""
MISSING, UNKNOWN, NONE_SERVED = "NodeImageMissing", "NodeImagesUnknown", "NoNodeImages"
IMAGE_REASONS: Final = (MISSING, UNKNOWN, NONE_SERVED)
"""Reasons of Machines that wait for their image."""
_ANYWHERE: Final = "/srv/images"
_IMAGE_FIELD: Final = "spec.imageLookupFormat of the TinkerbellCluster"


class InstallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Options of installations, for every front door."""

    metadata_url: str = ""
    """URL by which machines reach the metadata service, such as `http://192.0.2.1:7080`; empty if it is unknown."""
    per_rack: int = INSTALLS_PER_RACK
    """Limit of servers of a rack that are powered on at the same time; 0 for no limit."""
    images: ImageSource = NO_IMAGES
    """The source of images that no manifest names."""


@dataclass(frozen=True, slots=True)
class NodeImageIndex(Query[NodeImages]):
    """The index of the site's folder of images."""

    subject: ClassVar[str] = "the index of node images"


@dataclass(frozen=True, slots=True)
class ImageChoice:
    """An image that can be installed."""

    url: str
    sha256: str = ""
    """Checksum of the file as it is served; empty if it is unknown."""


@dataclass(frozen=True, slots=True)
class MissingImage:
    """The reason for which nothing can be installed yet; empty while the index is being read."""

    reason: str = ""
    message: str = ""
    needs: tuple[Need[Any], ...] = ()


def default_image(
    source: ImageSource, known: Fact[NodeImages] | None, version: str, architecture: str, now: datetime
) -> ImageChoice | MissingImage:
    """The image for a Machine whose manifests name none."""
    file = file_name(version)
    if not source.url:
        return _nothing_served(version)
    if architecture != ARCHITECTURE:
        cause = f"The server's architecture is {architecture}, and images of nodes are built for {ARCHITECTURE} only."
        return MissingImage(MISSING, f"{cause} Name an image for it in {_IMAGE_FIELD}.")
    url = f"{source.url}/{file}"
    if not source.index:
        return ImageChoice(url)
    needs = (Need(NodeImageIndex(), MAX_INDEX_AGE_S),)
    if known is None:
        return MissingImage(needs=needs)
    if known.value is None or not known.fresh(now, MAX_INDEX_AGE_S):
        if known.error is None:
            return MissingImage(needs=needs)
        cause = f"Cannot read which images of nodes are served: {known.error.message}."
        remedy = f"Check that {source.index} can be read from where Ironbell's controllers run."
        return MissingImage(UNKNOWN, f"{cause} {remedy}", needs)
    image = known.value.find(file)
    if image is not None:
        return ImageChoice(url, image.sha256)
    return MissingImage(MISSING, _missing(source, known.value, version), needs)


def _nothing_served(version: str) -> MissingImage:
    cause = "No image is named for this Machine: imageLookupFormat is not set, and this site serves no images of nodes."
    remedy = f"Build one with `{_build(version, _ANYWHERE)}` and start Ironbell with --node-images {_ANYWHERE}"
    return MissingImage(NONE_SERVED, f"{cause} {remedy}, or set {_IMAGE_FIELD}.")


def _missing(source: ImageSource, images: NodeImages, version: str) -> str:
    file, folder = file_name(version), source.folder or "DIR"
    where = f'folder "{source.folder}"' if source.folder else source.url
    if problem := images.unfinished.get(file):
        cause = f'Image "{file}" in {where} is not served: {problem}.'
        return f"{cause} Complete it, or build it with `{_build(version, folder)}`."
    versions = images.versions()
    has = f"has images for {', '.join(versions)}" if versions else "has no image of a node"
    return f'Image "{file}" is missing: {where} {has}. Build it with `{_build(version, folder)}`.'


def _build(version: str, folder: str) -> str:
    release = version if version.startswith("v") else f"v{version}"
    return f"ironbell image build --kernel server --kubernetes {release} --output {folder}/"
