"""A real site on a bridge, with machines made of namespaces: for tests that break something and look on."""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.network.machine import NetMachine, action, net_machine
from support.network.namespaces import Lan, lan
from support.site.up import Site, site

OURS = "192.0.2.1"
HTTP = f"{OURS}:7080"
MIB = 1 << 20
DISK_MIB = 160
IMAGE_MIB = 128
PINNED = "pinned.raw.zst"
"""A small image that a test may replace."""
IMAGE2DISK = "quay.io/tinkerbell/actions/image2disk:latest"
WRITEFILE = "quay.io/tinkerbell/actions/writefile:latest"


@dataclass(frozen=True)
class Image:
    """A disk image as it is served, and what it holds."""

    path: Path
    raw_sha256: str
    raw_size: int

    @property
    def url(self) -> str:
        return f"http://{HTTP}/images/{self.path.name}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def write(self, disk: str, **more: str) -> dict[str, Any]:
        """An action that writes it."""
        variables = {"IMG_URL": self.url, "DEST_DISK": disk, "PROGRESS_INTERVAL_SECONDS": "0.2", **more}
        return action("write the image", IMAGE2DISK, timeout=120, **variables)

    def is_on(self, disk: str) -> bool:
        """Whether a disk begins with it."""
        digest, left = hashlib.sha256(), self.raw_size
        with Path(disk).open("rb") as file:
            while left:
                chunk = file.read(min(left, MIB))
                digest.update(chunk)
                left -= len(chunk)
        return digest.hexdigest() == self.raw_sha256


def make_image(folder: Path, *, size_mib: int = IMAGE_MIB, name: str = "disk.raw.zst") -> Image:
    """An image that half compresses, so that a transfer of it takes a moment."""
    raw = folder / "raw.partial"
    source, digest = random.Random(7), hashlib.sha256()
    with raw.open("wb") as file:
        for number in range(size_mib):
            chunk = bytes(MIB) if number % 2 else source.randbytes(MIB)
            digest.update(chunk)
            file.write(chunk)
    subprocess.run(["zstd", "-q", "-1", "-f", str(raw), "-o", str(folder / name)], check=True)
    raw.unlink()
    return Image(folder / name, digest.hexdigest(), size_mib * MIB)


@dataclass
class FaultLab:
    """The site, its network, and what it serves."""

    folder: Path
    lan: Lan
    site: Site
    image: Image
    _stack: ExitStack = field(default_factory=ExitStack)
    _count: int = 9

    def machine(self, name: str, *, disk_mib: int = DISK_MIB) -> NetMachine:
        """One more machine; it goes with the lab."""
        self._count += 1
        made = net_machine(self.lan, self.folder, name=name, number=self._count, disk_mib=disk_mib)
        return self._stack.enter_context(made)


def make_osie(folder: Path) -> Path:
    """Something of a realistic size in the place of an in-memory OS."""
    osie = folder / "osie"
    osie.mkdir()
    (osie / "vmlinuz-x86_64").write_bytes(random.Random(1).randbytes(MIB))
    (osie / "initramfs-x86_64").write_bytes(random.Random(2).randbytes(32 * MIB))
    return osie


def publish(folder: Path) -> Image:
    """Make what is served."""
    images = folder / "images"
    images.mkdir()
    make_osie(folder)
    image = make_image(images)
    make_image(images, size_mib=8, name=PINNED)
    (images / "cut.raw.zst").write_bytes(image.path.read_bytes()[: image.path.stat().st_size // 2])
    (images / "page.raw").write_text("<!DOCTYPE html>\n<html>no image</html>\n" * 200)
    return image


def served(folder: Path) -> tuple[str, ...]:
    """Options that serve it."""
    osie, images = str(folder / "osie"), f"images={folder / 'images'}"
    return ("--interface", "br0", "--force", "--osie-dir", osie, "--artefacts", images)


@contextmanager
def fault_lab(folder: Path, *options: str, files: int = 0) -> Iterator[FaultLab]:
    """A running site that serves machines; this thread is inside its namespace."""
    image, words = publish(folder), (*served(folder), *options)
    with (
        lan(f"{OURS}/24") as network,
        site(folder / "data", *words, http=HTTP, files=files) as running,
        ExitStack() as stack,
    ):
        yield FaultLab(folder, network, running, image, stack)
