"""Node images from a folder, and from an apt repository with a registry: built by the command, read from the disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ironbell.image.kubernetes.release import PROGRAMS, parse_release
from support.kubeadm.packages import Programs, fill_folder, fill_repository, registry, repository
from support.skips import needs_program

pytestmark = [pytest.mark.root, pytest.mark.soak]

RELEASE = "v1.36.3"
PLUGIN = b"#!/bin/sh\necho the repository's own\n"


@pytest.fixture(scope="module")
def programs() -> Programs:
    return Programs(parse_release(RELEASE), Path("~/.cache/ironbell/kubernetes").expanduser())


def build(target: Path, *options: str) -> dict[str, Any]:
    """Run the command; gives the image's manifest."""
    command = [sys.executable, "-m", "ironbell.cli.main", "image", "build", "--kubernetes", RELEASE]
    command += ["--output", str(target), "--compress", "none", "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read(image: Path, path: str, scratch: Path) -> bytes:
    """A file of the image's root."""
    table = json.loads(subprocess.run(["sfdisk", "-J", str(image)], capture_output=True, check=True).stdout)
    (root,) = [part for part in table["partitiontable"]["partitions"] if part["name"] == "root"]
    scratch.unlink(missing_ok=True)
    disk = f"{image}?offset={root['start'] * 512}"
    subprocess.run(["debugfs", "-R", f"dump {path} {scratch}", disk], capture_output=True, check=True)
    return scratch.read_bytes()


def test_a_folder_of_programs_and_image_archives_becomes_a_node(tmp_path: Path, programs: Programs) -> None:
    folder, image = tmp_path / "given", tmp_path / "node.raw"
    folder.mkdir()
    fill_folder(folder, programs)
    made = build(image, "--source", str(folder))
    assert made["kubernetes"] == RELEASE
    assert set(made["container_images"]) == {one.reference for one in programs.images()}
    for name in PROGRAMS:
        assert read(image, f"/usr/bin/{name}", tmp_path / "read") == programs.of_node()[name].read_bytes()


@needs_program("dpkg-scanpackages")
def test_an_apt_repository_and_a_registry_become_a_node(tmp_path: Path, programs: Programs) -> None:
    packages, image = tmp_path / "apt", tmp_path / "node.raw"
    packages.mkdir()
    fill_repository(packages, programs, plugin=PLUGIN)
    with repository(packages) as entry, registry() as images:
        wanted = programs.images(images.authority)
        images.add([programs.contents(one) for one in wanted], tmp_path / "pushed.tar")
        made = build(image, "--source", "apt", "--apt-repository", entry, "--registry", images.authority)
    assert set(made["container_images"]) == {one.reference for one in wanted}
    for name in PROGRAMS:
        assert read(image, f"/usr/bin/{name}", tmp_path / "read") == programs.of_node()[name].read_bytes()
    assert read(image, "/opt/cni/bin/bridge", tmp_path / "read") == PLUGIN, "what a package brought stays"
