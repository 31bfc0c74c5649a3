"""Which built-in action an image name means.

Registry, tag and digest do not matter: the last element of the name does. Upstream's `waitdaemon` is a wrapper that
succeeds first and starts the image named by its variable `IMAGE` afterwards; here the wrapped action is run at once
as far as it can fail, and what cannot be undone (reboot, kexec) waits for the server's acknowledgement.

Source: tinkerbell/actions: README; jacobweinstock/waitdaemon: README.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ironbell.base.errors import IronbellError, Retry

# Name to module of ironbell.agent.actions.
MODULES: Mapping[str, str] = {
    "archive2disk": "archive2disk",
    "cexec": "cexec",
    "grub2disk": "grub2disk",
    "image2disk": "image2disk",
    "kexec": "kexec",
    "network": "network",
    "oci2disk": "oci2disk",
    "poweroff": "poweroff",
    "qemuimg2disk": "qemuimg2disk",
    "reboot": "reboot",
    "rootio": "rootio",
    "wipe": "wipe",
    "wipedisk": "wipe",
    "writefile": "writefile",
}
WRAPPER = "waitdaemon"
WRAPPER_WAIT_S = "10"
# Commands that an arbitrary image is wrapped for.
_POWER_COMMANDS = {"reboot": "reboot", "poweroff": "poweroff", "halt": "poweroff"}


class UnknownActionError(IronbellError):
    """No built-in action has this name."""

    reason = "UnknownAction"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in action with what the wrapper adds to its variables."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)


def image_name(image: str) -> str:
    """The last path element of an image reference, without tag and digest."""
    name = image.strip().split("@", 1)[0].rsplit("/", 1)[-1]
    return name.split(":", 1)[0].lower()


def resolve(image: str, *, command: Sequence[str], environment: Mapping[str, str]) -> Builtin:
    """The built-in action for an image.

    Raises:
        UnknownActionError: there is none; the message names those that exist.
    """
    name = image_name(image)
    if name == WRAPPER:
        return _wrapped(command, environment)
    if name in MODULES:
        return Builtin(name)
    raise UnknownActionError(f"image {image!r} is none of the built-in actions: {', '.join(known())}")


def _wrapped(command: Sequence[str], environment: Mapping[str, str]) -> Builtin:
    image = environment.get("IMAGE", "")
    if not image:
        raise UnknownActionError(f"{WRAPPER} needs the variable IMAGE: the action to run after success is reported")
    wait = {"WAIT_SECONDS": environment.get("WAIT_SECONDS") or WRAPPER_WAIT_S}
    name = image_name(image)
    if name in MODULES:
        return Builtin(name, wait)
    first = PurePosixPath(command[0]).name if command else ""
    if first in _POWER_COMMANDS:
        return Builtin(_POWER_COMMANDS[first], wait)
    raise UnknownActionError(f"{WRAPPER} cannot start image {image!r}: the built-in actions are {', '.join(known())}")


def known() -> list[str]:
    """All names that a template may use."""
    return sorted([*MODULES, WRAPPER])
