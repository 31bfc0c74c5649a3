"""`ironbell run wire --node-images` follows the folder while it serves, as the ordinary user that it has become."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ironbell.contract.servers.node_images import INDEX, NodeImages, file_name
from support.site.nowhere import KUBECONFIG
from support.waiting import eventually

pytestmark = pytest.mark.root


@pytest.fixture
def images() -> Iterator[Path]:
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory(prefix="ironbell-images-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def add(folder: Path, version: str, *, mode: int = 0o644) -> str:
    name = file_name(version)
    (folder / name).write_text(version)
    (folder / name).chmod(mode)
    (folder / f"{name}.sha256").write_text(f"{hashlib.sha256(version.encode()).hexdigest()}  {name}\n")
    return name


def test_images_are_followed_after_privileges_are_given_up(images: Path, tmp_path: Path) -> None:
    first, gone = add(images, "v1.36.0", mode=0o600), add(images, "v1.35.0")
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    command = [sys.executable, "-m", "ironbell", "run", "tootles", "--kubeconfig", str(tmp_path / "kubeconfig")]
    command += ["--data-dir", str(tmp_path / "wire"), "--http-port", "0", "--node-images", images.name]
    published = tmp_path / "wire" / "artefacts" / "images"

    def serves(wanted: set[str]) -> bool:
        """Whether these are listed, and no other file is there."""
        if process.poll() is not None:
            pytest.fail((tmp_path / "log").read_text())
        if not (published / INDEX).exists():
            return False
        listed = msgspec.json.decode((published / INDEX).read_bytes(), type=NodeImages)
        return {image.file for image in listed.images} == wanted == {one.name for one in published.iterdir()} - {INDEX}

    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=images.parent, stderr=log)
    try:
        eventually(lambda: serves({first, gone}))
        (images / gone).unlink()
        second = add(images, "v1.36.1")
        eventually(lambda: serves({first, second}))
        assert "Uid:\t0" not in Path(f"/proc/{process.pid}/status").read_text()
        assert (published / first).read_text() == "v1.36.0", "what root alone may read was published at the start"
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0
