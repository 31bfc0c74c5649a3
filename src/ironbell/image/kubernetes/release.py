"""A release of Kubernetes, what a node of it needs, and how container images are named. Pure.

Source: kubernetes/kubernetes: cmd/kubeadm/app/images (the list), build/lib/release.sh (upstream's paths).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ironbell.image.debian import BuildError

PROGRAMS = ("kubeadm", "kubelet", "kubectl")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)((?:-[0-9A-Za-z.-]+)?)")
_REFERENCE = re.compile(r"[^\s@/]+/[^\s@:]+:[\w.-]+")
_ETCD_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)(?:-\d+)?")


@dataclass(frozen=True, slots=True)
class Release:
    """One release, such as v1.36.3."""

    major: int
    minor: int
    patch: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}{self.suffix}"


def parse_release(text: str) -> Release:
    """Read `1.36.3` or `v1.36.3`.

    Raises:
        BuildError: the version is not complete: an image is of one release, not of the newest one of today.
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise BuildError(f"--kubernetes {text}: write a whole version, such as v1.36.3")
    return Release(int(match[1]), int(match[2]), int(match[3]), match[4])


@dataclass(frozen=True, slots=True)
class ContainerImage:
    """A reference as kubeadm lists it, with its name and tag."""

    reference: str

    @property
    def name(self) -> str:
        """The last part of the path, such as `coredns`."""
        return self.reference.rpartition(":")[0].rpartition("/")[2]

    @property
    def tag(self) -> str:
        return self.reference.rpartition(":")[2]


def parse_images(listing: str) -> tuple[ContainerImage, ...]:
    """Read the output of `kubeadm config images list`.

    Raises:
        BuildError: the output has no image, or lacks the pause image that every pod begins with.
    """
    images = tuple(ContainerImage(line.strip()) for line in listing.splitlines() if ":" in line)
    pause(images)
    return images


def with_further(required: Sequence[ContainerImage], references: Iterable[str]) -> tuple[ContainerImage, ...]:
    """The images that kubeadm requires, then others, each once.

    Raises:
        BuildError: a reference lacks its registry or tag, which containerd needs.
    """
    further = []
    for reference in references:
        if _REFERENCE.fullmatch(reference) is None:
            raise BuildError(f"--container-image {reference}: write registry, name and tag")
        further.append(ContainerImage(reference))
    return tuple(dict.fromkeys((*required, *further)))


def pause(images: Iterable[ContainerImage]) -> ContainerImage:
    """The image that holds a pod's namespaces.

    Raises:
        BuildError: no image is the pause image.
    """
    for image in images:
        if image.name == "pause":
            return image
    raise BuildError("kubeadm named no pause image: it is of another version, or did not answer")


def etcd_version(tag: str) -> str:
    """The version of etcd in an image's tag, whose number after the last dash counts builds of the image.

    Raises:
        BuildError: the tag is not a version.
    """
    match = _ETCD_VERSION.fullmatch(tag)
    if match is None:
        raise BuildError(f"kubeadm requires etcd {tag}, which is not a valid version")
    return f"v{match[1]}"
