"""Images of kube-proxy and CoreDNS."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.controllers.kubeadm.controlplane.workload.addons import (
    ImageError,
    coredns_change,
    kube_proxy_image,
    tag_version,
)

PROXY = "registry.k8s.io/kube-proxy:v1.32.0"


@pytest.mark.parametrize(
    ("version", "configuration", "image"),
    [
        ("v1.33.1", {}, "registry.k8s.io/kube-proxy:v1.33.1"),
        ("v1.33.1+build.2", {}, "registry.k8s.io/kube-proxy:v1.33.1_build.2"),
        ("v1.33.1", {"imageRepository": "example.com/k8s/"}, "example.com/k8s/kube-proxy:v1.33.1"),
    ],
)
def test_kube_proxy_follows_the_version(version: str, configuration: dict[str, Any], image: str) -> None:
    assert kube_proxy_image(PROXY, version, configuration) == image


@pytest.mark.parametrize(
    ("current", "configuration", "image"),
    [
        ("registry.k8s.io/coredns/coredns:v1.11.3", {}, ""),
        (
            "registry.k8s.io/coredns/coredns:v1.11.3",
            {"dns": {"imageTag": "v1.12.0"}},
            "registry.k8s.io/coredns/coredns:v1.12.0",
        ),
        ("registry.k8s.io/coredns/coredns:v1.11.3", {"imageRepository": "e.com/k"}, "e.com/k/coredns:v1.11.3"),
        (
            "e.com/k/coredns:v1.11.3",
            {"imageRepository": "a/", "dns": {"imageRepository": "b/c/"}},
            "b/c/coredns:v1.11.3",
        ),
        ("registry.k8s.io/coredns:1.7.0", {"dns": {"imageTag": "v1.8.0"}}, "registry.k8s.io/coredns/coredns:v1.8.0"),
        ("registry.k8s.io/coredns:1.6.7", {"dns": {"imageTag": "1.7.0"}}, "registry.k8s.io/coredns:1.7.0"),
    ],
)
def test_coredns_changes_when_it_is_named(current: str, configuration: dict[str, Any], image: str) -> None:
    change = coredns_change(current, configuration)
    assert (change.to_image if change else "") == image


@pytest.mark.parametrize(
    ("current", "tag"),
    [
        ("e.com/coredns:v1.11.3", "v1.10.0"),
        ("e.com/coredns:v1.11.3", "latest"),
        ("e.com/coredns", ""),
        ("coredns:1", ""),
    ],
)
def test_what_cannot_be_done_is_refused(current: str, tag: str) -> None:
    with pytest.raises(ImageError):
        coredns_change(current, {"dns": {"imageTag": tag}})


def test_tags_are_versions_with_anything_behind() -> None:
    assert tag_version("v1.12.0-eksbuild.2") == (1, 12, 0)
    assert tag_version("1.8_x") == (1, 8, 0)
