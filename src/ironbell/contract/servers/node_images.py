"""The images of Kubernetes nodes that a site serves: how their files are named, and the index that lists them.

The folder that is served has an index beside the images. It is written after its images, so that clients may
rely on them; controllers read it to learn whether a version can be installed at all.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

FOLDER: Final = "images"
"""The folder's name in URLs."""
INDEX: Final = "index.json"
ARCHITECTURE: Final = "amd64"
"""The only one that `ironbell image build` builds for."""
_NAMED: Final = re.compile(r"debian-kubernetes-(v\d+\.\d+\.\d+[-_.0-9A-Za-z]*)\.raw\.zst")


class NodeImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image that is served."""

    file: str
    sha256: str
    size_bytes: int = 0


class NodeImages(msgspec.Struct, frozen=True, kw_only=True):
    """Images of a folder."""

    images: tuple[NodeImage, ...] = ()
    unfinished: dict[str, str] = {}
    """Files that are not served, and why."""

    def find(self, file: str) -> NodeImage | None:
        """The image of this name."""
        return next((image for image in self.images if image.file == file), None)

    def versions(self) -> tuple[str, ...]:
        """Versions of Kubernetes that there are images for."""
        names = (_NAMED.fullmatch(image.file) for image in self.images)
        return tuple(sorted(match[1].replace("_", "+") for match in names if match))


class ImageSource(msgspec.Struct, frozen=True, kw_only=True):
    """Address of a site's images of nodes; without `url` it serves none."""

    url: str = ""
    """The folder's address for machines, such as `http://192.0.2.1:7080/images`."""
    folder: str = ""
    """The folder that the user named; where that is on another machine, empty."""
    index: str = ""
    """Path or URL of the index. Empty: servers are simulated, and there is an image for every version."""


NO_IMAGES: Final = ImageSource()


def image_source_at(url: str) -> ImageSource:
    """A folder of images on another machine, which serves its index as well; none for an empty URL."""
    return ImageSource(url=url, index=f"{url}/{INDEX}") if url else NO_IMAGES


def file_name(version: str) -> str:
    """The name of the image for a version of Kubernetes, as `ironbell image build` names it."""
    return f"debian-kubernetes-{version.replace('+', '_')}.raw.zst"
