"""What is found about an object, before it becomes conditions: one finding for both sets of them.

Source: kubernetes-sigs/cluster-api: util/conditions, util/conditions/deprecated/v1beta1.
"""

from __future__ import annotations

from typing import Final

import msgspec

ERROR: Final = "Error"
WARNING: Final = "Warning"
INFO: Final = "Info"


class Mark(msgspec.Struct, frozen=True):
    """A v1beta2 condition without its type."""

    status: str
    reason: str
    message: str = ""


class LegacyMark(msgspec.Struct, frozen=True):
    """A v1beta1 condition without its type."""

    status: str
    severity: str = ""
    reason: str = ""
    message: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """One finding for both sets; None leaves that set as it is."""

    mark: Mark | None = None
    legacy: LegacyMark | None = None


def good(reason: str) -> Verdict:
    """All is well."""
    return Verdict(Mark("True", reason), LegacyMark("True"))


def bad(reason: str, message: str, *, legacy_reason: str, legacy_message: str = "", severity: str = ERROR) -> Verdict:
    """Something is wrong, or not there yet."""
    return Verdict(
        Mark("False", reason, message), LegacyMark("False", severity, legacy_reason, legacy_message or message)
    )


def unknown(reason: str, message: str, *, legacy_reason: str, legacy_message: str = "") -> Verdict:
    """Nobody knows."""
    return Verdict(
        Mark("Unknown", reason, message), LegacyMark("Unknown", "", legacy_reason, legacy_message or message)
    )


def only(status: str, reason: str, message: str = "") -> Verdict:
    """A finding that v1beta1 has no condition for."""
    return Verdict(Mark(status, reason, message))
