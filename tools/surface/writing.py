"""The surface of a checkout as files in a folder, part by part."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from surface import commands, live, manifests, reference
from surface.checkout import Checkout

PARTS: Mapping[str, Callable[[Checkout], dict[str, str]]] = {
    "commands": commands.commands,
    "crds": manifests.crds,
    "install": manifests.installs,
    "reference": reference.reference,
    "live": live.live,
}
"""What collects each part that can be asked for; `live` starts sites."""


def write(checkout: Checkout, folder: Path, parts: Sequence[str] = tuple(PARTS)) -> None:
    """Write the surface into a folder that is empty or missing, a text file for each name.

    Raises:
        CheckoutError: the checkout's program does something unexpected.
        FileExistsError: there is something in the folder already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty: name an empty or a new folder")
    for part in parts:
        began = time.monotonic()
        files = PARTS[part](checkout)
        for name, text in sorted(files.items()):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.stderr.write(f"{checkout.folder}: {part}: {len(files)} files, {time.monotonic() - began:.0f} s\n")
