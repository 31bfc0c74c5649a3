"""The meaning of an action's image to an agent that has actions built in.

Registry, tag and digest do not matter: the last element of the name does. Upstream's `waitdaemon` is a wrapper that
succeeds first and starts the image named by its variable `IMAGE` afterwards.

Source: tinkerbell/actions: README; jacobweinstock/waitdaemon: README.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

BUILTIN_ACTIONS: Final = (
    "archive2disk",
    "cexec",
    "grub2disk",
    "image2disk",
    "kexec",
    "network",
    "oci2disk",
    "poweroff",
    "qemuimg2disk",
    "reboot",
    "rootio",
    "wipe",
    "wipedisk",
    "writefile",
)
"""Actions that this version's agent has built in."""
WRAPPER: Final = "waitdaemon"
_POWER_COMMANDS: Final = {"reboot": "reboot", "poweroff": "poweroff", "halt": "poweroff"}
"""Commands that an arbitrary image is wrapped for."""


def image_name(image: str) -> str:
    """The last path element of an image reference, without tag and digest."""
    name = image.strip().split("@", 1)[0].rsplit("/", 1)[-1]
    return name.split(":", 1)[0].lower()


def builtin_name(
    image: str, *, command: Sequence[str], environment: Mapping[str, str], known: Collection[str]
) -> str | None:
    """Name of the built-in action, one of `known`, that an image means; None if there is none."""
    name = image_name(image)
    if name != WRAPPER:
        return name if name in known else None
    wrapped = environment.get("IMAGE", "")
    if not wrapped:
        return None
    if image_name(wrapped) in known:
        return image_name(wrapped)
    return _POWER_COMMANDS.get(PurePosixPath(command[0]).name if command else "")
