"""Conditions of an object in both API versions, before they are written.

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


class Finding(msgspec.Struct, frozen=True):
    """A condition in both API versions; None leaves a version's condition unchanged."""

    mark: Mark | None = None
    legacy: LegacyMark | None = None


def good(reason: str) -> Finding:
    """Return a condition that is True."""
    return Finding(Mark("True", reason), LegacyMark("True"))


def bad(reason: str, message: str, *, legacy_reason: str, legacy_message: str = "", severity: str = ERROR) -> Finding:
    """Return a condition that is False."""
    return Finding(
        Mark("False", reason, message), LegacyMark("False", severity, legacy_reason, legacy_message or message)
    )


def unknown(reason: str, message: str, *, legacy_reason: str, legacy_message: str = "") -> Finding:
    """Return a condition that is Unknown."""
    return Finding(
        Mark("Unknown", reason, message), LegacyMark("Unknown", "", legacy_reason, legacy_message or message)
    )


def only(status: str, reason: str, message: str = "") -> Finding:
    """Return a condition that v1beta1 does not have."""
    return Finding(Mark(status, reason, message))
