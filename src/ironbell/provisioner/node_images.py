"""The default image of a Machine: one that the site serves for its version, or why there is none. Pure.

An installation begins only once its image can be fetched: a server that was wiped for an image that nobody has would be
of no use to anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from ironbell.contract.servers.node_images import ARCHITECTURE, ImageSource, NodeImages, file_name
from ironbell.kube.decision import Fact, Need, Query

LOOK_S: Final = 20.0
"""Maximum age of the index that a decision relies on."""
MISSING, UNKNOWN, NONE_SERVED = "NodeImageMissing", "NodeImagesUnknown", "NoNodeImages"
IMAGE_REASONS: Final = (MISSING, UNKNOWN, NONE_SERVED)
"""Reasons of Machines that wait for their image."""
_ANYWHERE: Final = "/srv/images"
_HOW: Final = "spec.imageLookupFormat of the TinkerbellCluster"


@dataclass(frozen=True, slots=True)
class NodeImageIndex(Query[NodeImages]):
    """What the site's folder of images has."""

    subject: ClassVar[str] = "the index of node images"


@dataclass(frozen=True, slots=True)
class ImageChoice:
    """An image that can be installed."""

    url: str
    sha256: str = ""
    """Of the file as it is served; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class MissingImage:
    """Why nothing can be installed yet. Without a reason, the index is still being read."""

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
        return MissingImage(MISSING, f"{cause} Name an image for it in {_HOW}.")
    url = f"{source.url}/{file}"
    if not source.index:
        return ImageChoice(url)
    needs = (Need(NodeImageIndex(), LOOK_S),)
    if known is None:
        return MissingImage(needs=needs)
    if known.value is None or not known.fresh(now, LOOK_S):
        if known.error is None:
            return MissingImage(needs=needs)
        cause = f"Cannot read which images of nodes are served: {known.error.message}."
        remedy = f"Check that {source.index} can be read from where Ironbell's controllers run."
        return MissingImage(UNKNOWN, f"{cause} {remedy}", needs)
    found = known.value.find(file)
    if found is not None:
        return ImageChoice(url, found.sha256)
    return MissingImage(MISSING, _missing(source, known.value, version), needs)


def _nothing_served(version: str) -> MissingImage:
    cause = "No image is named for this Machine: imageLookupFormat is not set, and this site serves no images of nodes."
    remedy = f"Build one with `{_build(version, _ANYWHERE)}` and start Ironbell with --node-images {_ANYWHERE}"
    return MissingImage(NONE_SERVED, f"{cause} {remedy}, or set {_HOW}.")


def _missing(source: ImageSource, images: NodeImages, version: str) -> str:
    file, folder = file_name(version), source.folder or "DIR"
    where = f'folder "{source.folder}"' if source.folder else source.url
    if why := images.unfinished.get(file):
        cause = f'Image "{file}" in {where} is not served: {why}.'
        return f"{cause} Complete it, or build it with `{_build(version, folder)}`."
    versions = images.versions()
    has = f"has images for {', '.join(versions)}" if versions else "has no image of a node"
    return f'Image "{file}" is missing: {where} {has}. Build it with `{_build(version, folder)}`.'


def _build(version: str, folder: str) -> str:
    release = version if version.startswith("v") else f"v{version}"
    return f"ironbell image build --kernel server --kubernetes {release} --output {folder}/"
