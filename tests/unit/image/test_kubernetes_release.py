"""Releases of Kubernetes, the images that kubeadm asks for, and the modules that programs are built from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbell.image.debian import BuildError
from ironbell.image.kubernetes.golang import KUBERNETES, Program, go_mod_of, kubernetes_program, link_flags, module_text
from ironbell.image.kubernetes.release import (
    ContainerImage,
    etcd_version,
    parse_images,
    parse_release,
    pause,
    with_further,
)

LISTING = """\
registry.example/kube-apiserver:v1.36.3
registry.example/coredns/coredns:v1.14.2
registry.example/pause:3.10.2
registry.example:5000/etcd:3.6.8-0
"""
KUBERNETES_MOD = """\
module k8s.io/kubernetes

go 1.26.0

require (
	github.com/one/other v0.0.0
	k8s.io/api v0.0.0
	k8s.io/client-go v0.0.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260108192941-914a6e750570
)

replace k8s.io/sample-cli-plugin => ./staging/src/k8s.io/sample-cli-plugin
"""


@pytest.mark.parametrize("text", ["1.36.3", "v1.36.3"])
def test_a_release_is_read_with_and_without_its_v(text: str) -> None:
    assert str(parse_release(text)) == "v1.36.3"


@pytest.mark.parametrize("text", ["1.36", "latest", "v1.36.3 ", "stable-1.36"])
def test_a_release_that_is_no_whole_version_is_refused(text: str) -> None:
    with pytest.raises(BuildError, match="whole version"):
        parse_release(text)


def test_a_prerelease_keeps_its_suffix() -> None:
    assert str(parse_release("v1.37.0-rc.1")) == "v1.37.0-rc.1"


def test_images_are_known_by_the_last_part_of_their_path() -> None:
    images = parse_images(LISTING)
    assert [(image.name, image.tag) for image in images] == [
        ("kube-apiserver", "v1.36.3"),
        ("coredns", "v1.14.2"),
        ("pause", "3.10.2"),
        ("etcd", "3.6.8-0"),
    ]
    assert pause(images) == ContainerImage("registry.example/pause:3.10.2")


def test_a_listing_without_pause_is_refused() -> None:
    with pytest.raises(BuildError, match="pause"):
        parse_images("registry.example/etcd:3.6.8-0\n")


def test_further_images_come_after_those_that_kubeadm_asks_for() -> None:
    asked = parse_images(LISTING)
    further = ["registry.example/kube-proxy:v1.35.4", "registry.example/pause:3.10.2"]
    assert with_further(asked, further) == (*asked, ContainerImage(further[0]))


@pytest.mark.parametrize(
    "reference", ["pause:3.10", "registry.example/pause", "registry.example:5000/pause", "a/b@c:1"]
)
def test_a_further_image_that_is_not_whole_is_refused(reference: str) -> None:
    with pytest.raises(BuildError, match="write registry, name and tag"):
        with_further(parse_images(LISTING), [reference])


@pytest.mark.parametrize(
    ("tag", "version"), [("3.6.8-0", "v3.6.8"), ("v3.6.8", "v3.6.8"), ("3.7.0-rc.1-0", "v3.7.0-rc.1")]
)
def test_an_image_of_etcd_counts_its_builds_behind_the_version(tag: str, version: str) -> None:
    assert etcd_version(tag) == version


def test_what_is_cut_out_of_kubernetes_is_required_at_its_release() -> None:
    program = kubernetes_program("kubelet", parse_release("v1.36.3"))
    text = module_text(program, KUBERNETES_MOD)
    assert "go 1.26.0\n" in text
    assert f"\t{KUBERNETES} v1.36.3\n" in text
    assert "\tk8s.io/api v0.36.3\n\tk8s.io/client-go v0.36.3\n" in text
    # one that only its own tests use is no requirement, and has not been published for every release
    assert "sample-cli-plugin" not in text
    assert "klog" not in text


def test_a_module_that_comes_with_its_origin_is_read_as_one_without() -> None:
    plain = '{"Path": "m", "Version": "v1", "GoMod": "/cache/m.mod", "Zip": "/cache/m.zip"}'
    assert go_mod_of(plain) == Path("/cache/m.mod")
    assert go_mod_of(plain.replace("{", '{"Origin": {"VCS": "git", "Ref": "refs/tags/v1"}, ')) == Path("/cache/m.mod")


def test_another_module_requires_itself_alone() -> None:
    text = module_text(Program("etcd", "example/etcd", "example/etcd", "v3.6.8"), "module x\n\ngo 1.24\n")
    assert text == "module ironbell.dev/node\n\ngo 1.24\n\nrequire (\n\texample/etcd v3.6.8\n)\n"


def test_kubernetes_programs_are_told_their_version() -> None:
    flags = link_flags(kubernetes_program("kubeadm", parse_release("1.36.3")))
    assert "version.gitVersion=v1.36.3 " in flags
    assert "version.gitMinor=36 " in flags
    assert link_flags(Program("etcd", "x", "x", "v3.6.8")) == "-s -w"
    told = Program("one", "x", "x", "v1.2.3", version_variable="main.Version")
    assert link_flags(told) == "-s -w -X main.Version=v1.2.3"
