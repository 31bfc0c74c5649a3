"""Where a node's programs and images come from, and what is refused before anything is built."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ironbell.cli.builds import _node
from ironbell.image import kubernetes
from ironbell.image.build import Options, inputs
from ironbell.image.debian import BuildError, Sources
from ironbell.image.kubernetes.golang import Program
from ironbell.image.kubernetes.node import Node, link_plugins
from ironbell.image.kubernetes.release import ContainerImage, parse_release
from ironbell.image.kubernetes.source import Folder, GoModules, Packages, Progress

RELEASE = parse_release("v1.36.3")
SOURCES = Sources("bookworm", "deb http://debian.example bookworm main")


def _folder(path: Path, version: str = "v1.36.3") -> Folder:
    for name in ("kubeadm", "kubelet", "kubectl"):
        (path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (path / name).chmod(0o755)
    return Folder(path)


def test_a_folder_gives_its_programs(tmp_path: Path) -> None:
    found = _folder(tmp_path).programs(RELEASE, tmp_path, print)
    assert found == {name: tmp_path / name for name in ("kubeadm", "kubelet", "kubectl")}


def test_a_folder_without_a_program_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (tmp_path / "kubelet").unlink()
    with pytest.raises(BuildError, match="the folder lacks kubelet"):
        folder.programs(RELEASE, tmp_path, print)


def test_a_folder_of_another_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"v1\.35\.0, not v1\.36\.3"):
        _folder(tmp_path, "v1.35.0").programs(RELEASE, tmp_path, print)


def test_packages_are_of_the_release_whatever_their_revision() -> None:
    source = Packages("deb [trusted=yes] http://apt.example ./")
    assert list(source.packages(RELEASE)) == ["kubeadm=1.36.3-*", "kubelet=1.36.3-*", "kubectl=1.36.3-*"]
    assert list(source.apt_lines()) == ["deb [trusted=yes] http://apt.example ./"]


def test_an_image_that_is_not_known_is_refused_by_its_name(tmp_path: Path) -> None:
    source = GoModules(tmp_path)
    with pytest.raises(BuildError, match=r"registry\.example/novel:1"):
        source.store_images([ContainerImage("registry.example/novel:1")], RELEASE, tmp_path, tmp_path, print)


def test_programs_of_container_images_are_of_their_tags_version(tmp_path: Path) -> None:
    """kube-proxy of an earlier release is on the nodes of a later one while a cluster is upgraded."""
    built: list[tuple[str, str]] = []

    class Recorded(GoModules):
        def _built(self, program: Program, progress: Progress) -> Path:
            built.append((program.name, program.version))
            raise BuildError("enough")

    for reference in ("registry.example/kube-scheduler:v1.35.4", "registry.example/etcd:3.6.6-0"):
        with pytest.raises(BuildError, match="enough"):
            Recorded(tmp_path).store_images([ContainerImage(reference)], RELEASE, tmp_path, tmp_path, print)
    assert built == [("kube-scheduler", "v1.35.4"), ("etcd", "v3.6.6")]


def test_a_node_is_built_anew_when_it_is_to_have_another_container_image(tmp_path: Path) -> None:
    node = Node(RELEASE, Packages("deb x"))
    other = replace(node, further_images=("registry.example/kube-proxy:v1.35.4",))
    assert inputs(Options(tmp_path, node=node), SOURCES) != inputs(Options(tmp_path, node=other), SOURCES)


def test_a_node_is_built_anew__when_its_folder_changes(tmp_path: Path) -> None:
    def digest() -> str:
        return inputs(Options(tmp_path / "out", node=Node(RELEASE, Folder(tmp_path))), SOURCES)

    _folder(tmp_path)
    first = digest()
    assert digest() == first
    (tmp_path / "images.tar").write_bytes(b"another")
    assert digest() != first
    assert inputs(Options(tmp_path / "out"), SOURCES) != first


def test_plugins_that_a_package_brought_to_where_they_are_expected_stay(tmp_path: Path) -> None:
    """Upstream's kubelet package depends on one that does."""
    for folder, names in (("usr/lib/cni", ("bridge", "portmap")), ("opt/cni/bin", ("bridge",))):
        (tmp_path / folder).mkdir(parents=True)
        for name in names:
            (tmp_path / folder / name).write_text(folder)
    link_plugins(tmp_path)
    assert (tmp_path / "opt/cni/bin/bridge").read_text() == "opt/cni/bin"
    assert str((tmp_path / "opt/cni/bin/portmap").readlink()) == "/usr/lib/cni/portmap"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kubernetes": "", "registry": "registry.example"}, "set --kubernetes too"),
        ({"kubernetes": "", "container_images": ("registry.example/kube-proxy:v1",)}, "set --kubernetes too"),
        ({"kubernetes": "v1.36.3", "source": "apt"}, "must be set together"),
        ({"kubernetes": "v1.36.3", "apt_repository": "deb x"}, "must be set together"),
        ({"kubernetes": "v1.36.3", "source": "/nowhere"}, "nor an existing folder"),
        ({"kubernetes": "1.36"}, "whole version"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"source": "gomodules", "apt_repository": "", "registry": "", **options}
    with pytest.raises(BuildError, match=message):
        _node(given.pop("kubernetes"), **given)


def test_a_nodes_cloud_init_does_all_that_every_images_does() -> None:
    """A list in a later file replaces the earlier one."""
    files = Path(kubernetes.__file__).parent.parent / "files/overlay/etc/cloud/cloud.cfg"
    of_node = Path(kubernetes.__file__).parent / "files/overlay/etc/cloud/cloud.cfg.d/06_node.cfg"
    every = yaml.safe_load(files.read_text())["cloud_init_modules"]
    node = yaml.safe_load(of_node.read_text())["cloud_init_modules"]
    assert [name for name in node if name in every] == every
    assert set(node) - set(every) == {"disk_setup", "mounts"}
