"""Resolves an image name to a built-in action.

An action in upstream's wrapper `waitdaemon` is run at once as far as it can fail; the part that cannot be undone
(reboot, kexec) waits for the server's acknowledgement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.actionimage import BUILTIN_ACTIONS, WRAPPER, builtin_name, image_name

_MODULES_OF_OTHER_NAMES: Mapping[str, str] = {"wipedisk": "wipe"}
MODULES: Mapping[str, str] = {name: _MODULES_OF_OTHER_NAMES.get(name, name) for name in BUILTIN_ACTIONS}
"""Name to module of ironbell.agent.actions."""
WRAPPER_WAIT_S = "10"


class UnknownActionError(IronbellError):
    """The image names no built-in action."""

    reason = "UnknownAction"
    retry = Retry.NEVER


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in action with what the wrapper adds to its variables."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)


def resolve(image: str, *, command: Sequence[str], environment: Mapping[str, str]) -> Builtin:
    """The built-in action for an image.

    Raises:
        UnknownActionError: no action has the name; the message lists the actions.
    """
    name = builtin_name(image, command=command, environment=environment, known=MODULES)
    is_wrapper, wrapped = image_name(image) == WRAPPER, environment.get("IMAGE", "")
    if name is not None:
        wait = {"WAIT_SECONDS": environment.get("WAIT_SECONDS") or WRAPPER_WAIT_S}
        return Builtin(name, wait if is_wrapper else {})
    if not is_wrapper:
        raise UnknownActionError(f"image {image!r} is not one of the built-in actions: {', '.join(known())}")
    if not wrapped:
        raise UnknownActionError(f"{WRAPPER} needs the variable IMAGE: the action to run after success is reported")
    raise UnknownActionError(f"{WRAPPER} cannot start image {wrapped!r}: the built-in actions are {', '.join(known())}")


def known() -> list[str]:
    """All names that a template may use."""
    return sorted([*MODULES, WRAPPER])
