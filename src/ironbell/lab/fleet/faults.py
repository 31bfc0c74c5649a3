"""Faults of simulated servers, by a file: their rates, for all servers or for some.

Pure but for `read`. A rate is a share between 0 and 1 of the occasions that its name states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ironbell.base.errors import IronbellError, Retry
from ironbell.base.randomness import Randomness
from ironbell.base.textfile import TextFileError, read_text_file
from ironbell.codec import goyaml

Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]
Fault = Literal["bmc_unreachable", "power_on_ignored", "action_fails", "slow_boot", "agent_vanishes", "kubeadm_fails"]
"""The fields of `Faults` that are rates."""


class FaultsFileError(IronbellError):
    """The file of faults is wrong; the message names the field."""

    reason = "InvalidFaultsFile"
    retry = Retry.NEVER


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Rates of the faults of one server."""

    bmc_unreachable: Rate = 0.0
    """Share of the requests to its BMC whose connection is cut without an answer."""
    power_on_ignored: Rate = 0.0
    """Share of the power-ons and resets that the BMC confirms, and that have no effect."""
    action_fails: Rate = 0.0
    """Share of the actions that fail."""
    action_message: str = ""
    """Message that the agent reports for an action that fails; empty for a message of the simulation's own."""
    slow_boot: Rate = 0.0
    """Share of the boots that take `slow-boot-seconds` more."""
    slow_boot_seconds: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    agent_vanishes: Rate = 0.0
    """Share of the actions in which the machine stops, and reports nothing any more until it is reset."""
    kubeadm_fails: Rate = 0.0
    """Share of the runs of kubeadm that fail."""


class FaultsFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Faults of all servers; `servers` overrides them for some, by name."""

    all: Faults = Faults()
    servers: dict[str, dict[str, Any]] = {}

    def of(self, name: str) -> Faults:
        """The faults of one server."""
        own = self.servers.get(name)
        if own is None:
            return self.all
        return msgspec.convert({**msgspec.to_builtins(self.all), **own}, Faults)


def strikes(rate: float, randomness: Randomness) -> bool:
    """Return whether the fault occurs this time."""
    return rate > 0 and randomness.fraction() < rate


def read(path: Path) -> FaultsFile:
    """Read a file.

    Raises:
        FaultsFileError: it cannot be read, or a field of it is wrong.
    """
    try:
        document = goyaml.load(read_text_file(path, purpose="faults of simulated servers"))
    except TextFileError as error:
        raise FaultsFileError(str(error)) from error
    except IronbellError as error:
        raise FaultsFileError(f"{path}: {error}") from error
    try:
        return parse(document)
    except FaultsFileError as error:
        raise FaultsFileError(f"{path}: {error}") from error


def parse(document: Any) -> FaultsFile:
    """Check a file's content.

    Raises:
        FaultsFileError: a field is wrong.
    """
    try:
        file = msgspec.convert({} if document is None else document, FaultsFile)
        for name in file.servers:
            _check_overrides(name, file)
    except msgspec.ValidationError as error:
        raise FaultsFileError(str(error)) from error
    return file


def _check_overrides(name: str, file: FaultsFile) -> None:
    try:
        file.of(name)
    except msgspec.ValidationError as error:
        raise FaultsFileError(f"servers.{name}: {error}") from error
