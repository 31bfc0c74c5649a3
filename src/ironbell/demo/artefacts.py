"""The in-memory OS and the disk images of the demonstration, built if they are missing or out of date.

They are kept in the user's cache folder, so that they are built once; a lock excludes concurrent builds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ironbell.base.clock import SystemClock
from ironbell.image import build as images
from ironbell.image.debian import BuildError, chosen_sources
from ironbell.image.kubernetes.node import Node
from ironbell.image.kubernetes.release import parse_release
from ironbell.image.kubernetes.source import GoModules
from ironbell.osie import build as osies

IMAGE_NAME = "debian.raw.zst"
NODE_RELEASE = "v1.36.3"
"""The Kubernetes release of the demonstration's nodes."""


def cache_folder() -> Path:
    """The folder of all builds, below `$XDG_CACHE_HOME` or `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "ironbell"


def ensure_osie(progress: Callable[[str], None]) -> Path:
    """The folder of the in-memory OS.

    Raises:
        BuildError: it cannot be built here.
    """
    folder = cache_folder() / "osie"
    with alone("osie"):
        build_progress = _BuildProgress("the in-memory OS, about a minute", progress)
        osies.build(osies.Options(folder, only_if_changed=True), chosen_sources(None, ""), progress=build_progress)
    return folder


def ensure_image(progress: Callable[[str], None]) -> Path:
    """The compressed disk image.

    Raises:
        BuildError: it cannot be built here.
    """
    image = cache_folder() / "images" / IMAGE_NAME
    with alone("image"):
        build_progress = _BuildProgress("a disk image of Debian, about two minutes", progress)
        images.build(images.Options(image, only_if_changed=True), chosen_sources(None, ""), progress=build_progress)
    return image


def ensure_node_image(
    release: str, progress: Callable[[str], None], *, folder: str = "images", further_images: Sequence[str] = ()
) -> Path:
    """The disk image of a Kubernetes node of this release, such as `v1.36.3`, from Go modules.

    Images of the same release with other container images are kept in separate folders.

    Raises:
        BuildError: it cannot be built here.
    """
    image = cache_folder() / folder / f"debian-kubernetes-{release}.raw.zst"
    programs = cache_folder() / "kubernetes"
    if not image.exists() and not programs.exists() and shutil.which("go") is None:
        raise BuildError("Kubernetes is built from its Go modules, but Go is missing: install Go and add it to PATH")
    node = Node(parse_release(release), GoModules(programs), further_images=tuple(further_images))
    with alone("image"):
        options = images.Options(image, only_if_changed=True, node=node)
        description = f"a disk image of Kubernetes {release} nodes, about twenty minutes"
        images.build(options, chosen_sources(None, ""), progress=_BuildProgress(description, progress))
    return image


@dataclass
class _BuildProgress:
    """Reports the steps of a build with their times, from its first step: a build that is up to date reports
    nothing."""

    description: str
    report: Callable[[str], None]
    _began_s: float = -1.0

    def __call__(self, text: str) -> None:
        now_s = SystemClock().monotonic()
        if self._began_s < 0:
            self._began_s = now_s
            self.report(f"building {self.description}; later runs reuse it")
        self.report(f"  {now_s - self._began_s:5.0f} s  {text}")


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold the lock of this name while the block runs; other processes wait for it."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
