"""How making an Ignition config fails."""

from __future__ import annotations

from ironbell.base.errors import IronbellError, Retry


class IgnitionError(IronbellError):
    """What the spec says has no place in an Ignition config. The message names the field, never a content."""

    reason, retry = "IgnitionUnusable", Retry.NEVER
