"""Operations on a BMC, by what a controller must know to repeat them.

* A goal (on, off, soft) is completed when the power state is reached; sending it again does no harm.
* A setting (boot device, virtual media) is completed when the BMC accepts it; sending it again does no harm.
* A pulse (cycle, reset) is completed when the BMC accepts it; sending it again interrupts the server a second time.
* A query (status) is completed when the BMC responds.

Source: tinkerbell/tinkerbell: rufio/internal/controller/task.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ironbell.api.bmc.action import Action, PowerAction
from ironbell.api.bmc.machine import PowerState


class Nature(Enum):
    """The kinds of operations; see the module."""

    GOAL = "goal"
    SETTING = "setting"
    PULSE = "pulse"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class SetPower:
    """Change the power."""

    action: PowerAction


@dataclass(frozen=True, slots=True)
class SetBootDevice:
    """Choose the device that the server boots from."""

    device: str
    persistent: bool
    efi_boot: bool


@dataclass(frozen=True, slots=True)
class SetMedia:
    """Insert an image into the BMC's virtual drive; an empty address ejects."""

    url: str
    kind: str


@dataclass(frozen=True, slots=True)
class QueryPower:
    """Query the power state."""


Operation = SetPower | SetBootDevice | SetMedia | QueryPower

_GOALS = {PowerAction.ON: PowerState.ON, PowerAction.OFF: PowerState.OFF, PowerAction.SOFT: PowerState.OFF}


class UnusableActionError(Exception):
    """An action that no driver can carry out; the message names the field."""


def operation_of(action: Action) -> Operation:
    """The operation that an action of a Task requests.

    Raises:
        UnusableActionError: the action is empty, or names an operation that does not exist.
    """
    if action.power_action is not None:
        return _power(action.power_action)
    if action.boot_device is not None:
        chosen = action.boot_device
        return _boot_device(chosen.device, persistent=chosen.persistent, efi_boot=chosen.efi_boot)
    if action.one_time_boot_device_action is not None:
        once = action.one_time_boot_device_action
        return _boot_device(once.device[0] if once.device else "", persistent=False, efi_boot=once.efi_boot)
    if action.virtual_media_action is not None:
        media = action.virtual_media_action
        return SetMedia(media.media_url, media.kind)
    raise UnusableActionError("no action specified in Task, nothing to do")


def nature_of(operation: Operation) -> Nature:
    """The nature of an operation."""
    if isinstance(operation, QueryPower):
        return Nature.QUERY
    if isinstance(operation, SetPower):
        return Nature.GOAL if operation.action in _GOALS else Nature.PULSE
    return Nature.SETTING


def goal_of(operation: Operation) -> PowerState | None:
    """The power state that a goal reaches; None for other operations."""
    return _GOALS.get(operation.action) if isinstance(operation, SetPower) else None


def describe(operation: Operation) -> str:
    """A short description for messages. Addresses of media may hold tokens and are left out."""
    if isinstance(operation, SetPower):
        return f"power {operation.action}"
    if isinstance(operation, SetBootDevice):
        return f"boot device {operation.device}"
    if isinstance(operation, SetMedia):
        return "insert virtual media" if operation.url else "eject virtual media"
    return "power status"


def _power(name: str) -> Operation:
    try:
        action = PowerAction(name)
    except ValueError:
        raise UnusableActionError(
            f"spec.task.powerAction {name!r} is not valid; use {', '.join(PowerAction)}"
        ) from None
    return QueryPower() if action is PowerAction.STATUS else SetPower(action)


def _boot_device(device: str, *, persistent: bool, efi_boot: bool) -> SetBootDevice:
    if not device:
        raise UnusableActionError("spec.task: the boot device is empty; set it, for example to pxe or disk")
    return SetBootDevice(device, persistent, efi_boot)
