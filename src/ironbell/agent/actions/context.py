"""The interface of an action: its variables, its output, and its messages to the agent.

Failure modes: every `ActionError` becomes one line on stderr, one message and the exit status that it carries; an
operating system's error is turned into such a text at the top, never into a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from ironbell.agent import messages
from ironbell.base.errors import IronbellError, Retry

ALLOW_FILE_DISKS = "IRONBELL_ALLOW_FILE_DISKS"
ENVIRONMENT_FD_VARIABLE = "IRONBELL_ENVIRONMENT_FD"


class ActionError(IronbellError):
    """An action cannot do what it was requested to do; the message is for the author of the template."""

    reason = "ActionFailed"
    retry = Retry.NEVER

    def __init__(self, message: str, *, exit_status: int = 1) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class Output(Protocol):
    """Output of an action."""

    def log(self, text: str) -> None:
        """Print a line for people."""
        ...

    def send(self, message: messages.Message) -> None:
        """Send a message to the agent."""
        ...


class ProcessOutput:
    """Standard output, and the pipe to the agent if there is one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        number = environment.get(messages.MESSAGES_FD_VARIABLE, "")
        self._descriptor = int(number) if number.isdigit() else None

    def log(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def send(self, message: messages.Message) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, messages.encode(message))
        except OSError:
            # The agent has ended; the action still ends properly.
            self._descriptor = None


def read_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The action's variables over those of the process, from the agent's memory file if it is set."""
    number = environment.get(ENVIRONMENT_FD_VARIABLE, "")
    if not number.isdigit():
        return dict(environment)
    with os.fdopen(int(number), "rb") as file:
        return {**environment, **msgspec.json.decode(file.read(), type=dict[str, str])}


@dataclass(frozen=True)
class Context:
    """One action's call."""

    environment: Mapping[str, str]
    output: Output
    command: tuple[str, ...] = ()

    @property
    def device_wait_s(self) -> float:
        """Time to wait for a device that does not exist yet, such as a partition after the table was read again."""
        return self.number("DEVICE_WAIT_SECONDS", default=10.0)

    def required(self, name: str) -> str:
        """A variable that must be set and not empty."""
        value = self.environment.get(name, "")
        if not value.strip():
            raise ActionError(f"{name} is not set; add it to the action's environment", exit_status=20)
        return value

    def text(self, name: str, default: str = "") -> str:
        return self.environment.get(name, "") or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean as Go's strconv.ParseBool reads it."""
        value = self.environment.get(name, "").strip()
        if not value:
            return default
        if value in {"1", "t", "T", "true", "TRUE", "True"}:
            return True
        if value in {"0", "f", "F", "false", "FALSE", "False"}:
            return False
        raise ActionError(f"{name} is {value!r}; write true or false", exit_status=10)

    def number(self, name: str, *, default: float, minimum: float = 0.0) -> float:
        value = self.environment.get(name, "").strip()
        if not value:
            return default
        try:
            number = float(value)
        except ValueError:
            raise ActionError(f"{name} is {value!r}; write a number", exit_status=10) from None
        if not minimum <= number < float("inf"):
            raise ActionError(f"{name} is {value}; it must be at least {minimum:g}", exit_status=10)
        return number

    def octal(self, name: str) -> int:
        value = self.required(name).strip()
        try:
            number = int(value.removeprefix("0o"), 8)
        except ValueError:
            raise ActionError(f"{name} is {value!r}; write octal digits such as 0644", exit_status=10) from None
        if not 0 <= number <= 0o7777:
            raise ActionError(f"{name} is {value!r}; it must lie between 0 and 07777", exit_status=10)
        return number

    @property
    def allows_file_disks(self) -> bool:
        """Return whether regular files may stand in for disks, which only the test runner permits."""
        return self.environment.get(ALLOW_FILE_DISKS) == "1"

    def log(self, text: str) -> None:
        self.output.log(text)

    def send(self, message: messages.Message) -> None:
        self.output.send(message)
