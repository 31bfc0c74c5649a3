"""Which images kube-proxy and CoreDNS are to have, pure.

kube-proxy follows the Kubernetes version once all Machines have it. CoreDNS changes only when its image is named in the
KubeadmControlPlane: a Kubernetes upgrade alone never raises it.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{workload_cluster,workload_cluster_coredns}.go,
util/container/image.go, util/version/version.go (ParseTolerantImageTag).
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


class ImageError(IronbellError):
    """An image cannot be read, or must not be changed as asked."""

    reason, retry = "ImageUnusable", Retry.BACKOFF


@dataclass(frozen=True, slots=True)
class CoreDnsChange:
    """From which image of CoreDNS to which."""

    from_image: str
    to_image: str
    from_version: tuple[int, int, int]
    to_version: tuple[int, int, int]


def kube_proxy_image(current: str, kubernetes_version: str, cluster_configuration: Mapping[str, Any]) -> str:
    """The image that kube-proxy is to have.

    Raises:
        ImageError: the current one cannot be read.
    """
    repository, name, _tag = _split(current)
    tag = _INVALID_TAG.sub("_", kubernetes_version)
    wanted = str(cluster_configuration.get("imageRepository") or "")
    return f"{wanted.rstrip('/') if wanted else repository}/{name}:{tag}"


def coredns_change(current: str, cluster_configuration: Mapping[str, Any]) -> CoreDnsChange | None:
    """What is to become of CoreDNS; None if it has the right image.

    Raises:
        ImageError: an image or tag cannot be read, or the version would go down.
    """
    repository, name, tag = _split(current)
    if not tag:
        raise ImageError(f"the Deployment coredns has image {current!r} without a tag; give it one")
    dns = cluster_configuration.get("dns") or {}
    repository = (dns.get("imageRepository") or cluster_configuration.get("imageRepository") or repository).rstrip("/")
    wanted = dns.get("imageTag") or tag
    from_version, to_version = tag_version(tag), tag_version(wanted)
    if repository in _RENAMED_IN and name == "coredns" and to_version >= _RENAMED_SINCE:
        name = "coredns/coredns"
    image = f"{repository}/{name}:{wanted}"
    if image == current:
        return None
    if to_version < from_version:
        raise ImageError(
            f"spec.kubeadmConfigSpec.clusterConfiguration.dns.imageTag {wanted!r} is older than {tag!r}, which runs; "
            "CoreDNS can only be raised"
        )
    return CoreDnsChange(current, image, from_version, to_version)


def tag_version(tag: str) -> tuple[int, int, int]:
    """The version that an image's tag stands for.

    Raises:
        ImageError: it stands for none.
    """
    match = _TAG_VERSION.fullmatch(tag)
    if match is None:
        raise ImageError(f"image tag {tag!r} is no version")
    major, minor, patch = (int(part or 0) for part in match.groups())
    return major, minor, patch


def _split(image: str) -> tuple[str, str, str]:
    """Repository, name and tag: the last part of the path is the name."""
    path, _, digest = image.partition("@")
    repository, slash, last = path.rpartition("/")
    name, _, tag = last.partition(":")
    if not slash or not name or digest:
        raise ImageError(f"image {image!r} is not of the form REPOSITORY/NAME:TAG")
    return repository, name, tag
