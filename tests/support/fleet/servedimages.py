"""Files that stand for images of nodes where servers are simulated: served and listed, and installed by nobody."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ironbell.contract.servers.node_images import file_name


def served_image(folder: Path, release: str) -> str:
    """Its file and the file with its digest, as `ironbell image build` names them; returns the name."""
    name = file_name(release)
    (folder / name).write_text(release)
    (folder / f"{name}.sha256").write_text(f"{hashlib.sha256(release.encode()).hexdigest()}  {name}\n")
    return name
