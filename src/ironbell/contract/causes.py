"""Choice of the root among several causes, by the reason that an object reports. Pure.

`ironbell why` follows a chain of objects with this rule, and owners of Machines report the causes that it ranks highest
in their conditions, so that both name the same cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Final, TypeVar

T = TypeVar("T")


class Weight(IntEnum):
    """Weight of a cause; of two causes the heavier one is the root."""

    CONSEQUENCE = 0
    """It follows from the state of another object."""
    WAITING = 1
    """It is under way and ends by itself."""
    NEEDS_HELP = 2
    """It does not end until somebody changes something."""


_CONSEQUENCES: Final = frozenset({"WaitingForBootstrapData", "WaitingForCluster", "WaitingForOwner"})
_NEEDS_HELP: Final = frozenset(
    {
        "BMCNotContactable",
        "BootstrapFailed",
        "DisksKept",
        "EndpointInUse",
        "ForeignJob",
        "ForeignTemplate",
        "ForeignWorkflow",
        "HardwareHeld",
        "HardwareLost",
        "HardwareNotConfirmed",
        "HardwareUnusable",
        "InstallationFailed",
        "InvalidAffinity",
        "InvalidImageLookup",
        "InvalidWipePolicy",
        "KeepDisksUnknown",
        "MetadataURLUnknown",
        "MissingISO",
        "NoNodeImages",
        "NoReport",
        "NodeImageMissing",
        "NodeImagesUnknown",
        "PoweredOff",
        "TemplateEmpty",
        "TemplateNotFound",
        "TooManyAddresses",
        "WaitingForHardware",
        "WaitingForManualAction",
    }
)


def weight_of(reason: str) -> Weight:
    """Weight of what an infrastructure's machine reports; an unknown reason is taken to end by itself."""
    if reason in _NEEDS_HELP:
        return Weight.NEEDS_HELP
    return Weight.CONSEQUENCE if reason in _CONSEQUENCES else Weight.WAITING


def heaviest(causes: Iterable[T], weight: Callable[[T], Weight]) -> T | None:
    """Return the heaviest cause, of several alike the first; None if there is none."""
    return max(causes, key=weight, default=None)
