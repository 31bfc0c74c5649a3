"""Errors of conversions."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class ConversionError(IronbellError):
    """An object cannot be brought to another version."""

    reason = "ConversionFailed"
    retry = Retry.NEVER
