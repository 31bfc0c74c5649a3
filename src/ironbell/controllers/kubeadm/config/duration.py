"""Durations as Go prints them.

Source: golang/go: src/time/time.go (Duration.String).
"""

from __future__ import annotations


def go_duration(seconds: int) -> str:
    """Whole seconds, such as `50s`, `1m40s` or `8760h0m0s`."""
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s"
