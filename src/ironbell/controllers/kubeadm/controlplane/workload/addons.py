"""The desired images of kube-proxy and CoreDNS, and the check of CoreDNS's configuration. Pure.

kube-proxy follows the Kubernetes version once all Machines have it. CoreDNS changes only when the KubeadmControlPlane
names its image: an upgrade of Kubernetes alone does not change it.

Upstream rewrites Corefiles with a library that records what each version of CoreDNS dropped. Since 1.8.0 no version has
dropped anything from a Corefile of kubeadm, so that it is left unchanged from there on. Changes from older versions are
rejected: the user migrates the Corefile by hand first, or sets the annotation
`controlplane.cluster.x-k8s.io/skip-coredns`.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{workload_cluster,workload_cluster_coredns}.go,
util/container/image.go, util/version/version.go (ParseTolerantImageTag); coredns/corefile-migration:
migration/versions.go, migration/plugins.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ironbell.base.errors import IronbellError, Retry

_TAG_VERSION: Final = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:[-_+].*)?")
_INVALID_TAG: Final = re.compile(r"[^-a-zA-Z0-9_.]")
_RENAMED_IN: Final = ("registry.k8s.io", "k8s.gcr.io")
_RENAMED_SINCE: Final = (1, 8, 0)
_COREFILE_UNCHANGED_SINCE: Final = (1, 8, 0)


class ImageError(IronbellError):
    """The name of an image is not valid, or the requested change is not allowed."""

    reason, retry = "ImageUnusable", Retry.BACKOFF


class CorefileError(IronbellError):
    """The Corefile would have to be rewritten."""

    reason, retry = "CorefileNotMigrated", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class CoreDnsChange:
    """The current and the desired image of CoreDNS."""

    from_image: str
    to_image: str
    from_version: tuple[int, int, int]
    to_version: tuple[int, int, int]


def kube_proxy_image(current: str, kubernetes_version: str, cluster_configuration: Mapping[str, Any]) -> str:
    """Return the desired image of kube-proxy.

    Raises:
        ImageError: the name of the current image is not valid.
    """
    repository, name, _tag = _split(current)
    tag = _INVALID_TAG.sub("_", kubernetes_version)
    desired = str(cluster_configuration.get("imageRepository") or "")
    return f"{desired.rstrip('/') if desired else repository}/{name}:{tag}"


def coredns_change(current: str, cluster_configuration: Mapping[str, Any]) -> CoreDnsChange | None:
    """Return the change of CoreDNS; None if it has the desired image.

    Raises:
        ImageError: an image or tag is not valid, or the version would be lowered.
    """
    repository, name, tag = _split(current)
    if not tag:
        raise ImageError(f"the image {current!r} of the Deployment coredns has no tag; set one")
    dns = cluster_configuration.get("dns") or {}
    repository = (dns.get("imageRepository") or cluster_configuration.get("imageRepository") or repository).rstrip("/")
    desired = dns.get("imageTag") or tag
    from_version, to_version = tag_version(tag), tag_version(desired)
    if repository in _RENAMED_IN and name == "coredns" and to_version >= _RENAMED_SINCE:
        name = "coredns/coredns"
    image = f"{repository}/{name}:{desired}"
    if image == current:
        return None
    if to_version < from_version:
        raise ImageError(
            f"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag {desired!r} is older than the current {tag!r}; "
            "CoreDNS can only be upgraded"
        )
    return CoreDnsChange(current, image, from_version, to_version)


def tag_version(tag: str) -> tuple[int, int, int]:
    """Return the version in an image's tag.

    Raises:
        ImageError: the tag does not contain a version.
    """
    match = _TAG_VERSION.fullmatch(tag)
    if match is None:
        raise ImageError(f"image tag {tag!r} is not a valid version")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return major, minor, patch


def _split(image: str) -> tuple[str, str, str]:
    """Return repository, name and tag; the name is the last part of the path."""
    path, _, digest = image.partition("@")
    repository, slash, last = path.rpartition("/")
    name, _, tag = last.partition(":")
    if not slash or not name or digest:
        raise ImageError(f"image {image!r} is not of the form REPOSITORY/NAME:TAG")
    return repository, name, tag


def check_migration(from_version: tuple[int, int, int], to_version: tuple[int, int, int]) -> None:
    """Check that a change of CoreDNS's version needs no migration of the Corefile.

    Raises:
        CorefileError: it may need one.
    """
    if from_version == to_version or from_version >= _COREFILE_UNCHANGED_SINCE:
        return
    current = ".".join(map(str, from_version))
    raise CorefileError(
        f"CoreDNS {current} is older than 1.8.0, and its Corefile cannot be migrated automatically; migrate it by hand "
        "and set the image of the Deployment coredns, or set the annotation controlplane.cluster.x-k8s.io/skip-coredns"
    )
