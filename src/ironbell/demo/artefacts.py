"""The in-memory OS and the disk image that the demonstration needs, built when they are missing or out of date.

They live in the user's cache folder, so that they are built once; a lock keeps two builders apart.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbell.image import build as images
from ironbell.image.debian import chosen_sources
from ironbell.image.kubernetes.node import Node
from ironbell.image.kubernetes.release import parse_release
from ironbell.image.kubernetes.source import GoModules
from ironbell.osie import build as osies

IMAGE_NAME = "debian.raw.zst"
NODE_RELEASE = "v1.36.3"
"""The Kubernetes release of the demonstration's nodes."""


def cache_folder() -> Path:
    """Where builds are kept: below `$XDG_CACHE_HOME`, else `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ironbell"


def ensure_osie(progress: Callable[[str], None]) -> Path:
    """The folder of the in-memory OS.

    Raises:
        BuildError: it cannot be built here.
    """
    folder = cache_folder() / "osie"
    with _alone("osie"):
        osies.build(osies.Options(folder, only_if_changed=True), chosen_sources(None, ""), progress=progress)
    return folder


def ensure_image(progress: Callable[[str], None]) -> Path:
    """The compressed disk image.

    Raises:
        BuildError: it cannot be built here.
    """
    image = cache_folder() / "images" / IMAGE_NAME
    with _alone("image"):
        images.build(images.Options(image, only_if_changed=True), chosen_sources(None, ""), progress=progress)
    return image


def ensure_node_image(release: str, progress: Callable[[str], None]) -> Path:
    """The disk image of a Kubernetes node of this release, such as `v1.36.3`, from Go modules.

    Raises:
        BuildError: it cannot be built here.
    """
    image = cache_folder() / "images" / f"debian-kubernetes-{release}.raw.zst"
    node = Node(parse_release(release), GoModules(cache_folder() / "kubernetes"))
    with _alone("image"):
        options = images.Options(image, only_if_changed=True, node=node)
        images.build(options, chosen_sources(None, ""), progress=progress)
    return image


@contextmanager
def _alone(what: str) -> Iterator[None]:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
