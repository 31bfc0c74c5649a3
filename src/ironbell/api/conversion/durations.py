"""Go's durations and whole seconds.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/conversion.go; golang/go: src/time/format.go.
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.api.conversion.errors import ConversionError
from ironbell.codec.durations import SECOND, DurationError, parse_duration, seconds_text

MOST_SECONDS: Final = 2**31 - 1


def to_seconds(value: Any) -> int:
    """A duration as Go writes it, such as `1h30m`, in whole seconds towards zero, as many as fit into 32 bits.

    Raises:
        ConversionError: the value is not a duration.
    """
    try:
        nanoseconds = parse_duration(value if isinstance(value, str) else "")
    except DurationError as error:
        raise ConversionError(f'failed to convert object: time: invalid duration "{value}"') from error
    whole = abs(nanoseconds) // SECOND
    return min(whole, MOST_SECONDS) if nanoseconds >= 0 else -whole


def from_seconds(value: Any) -> str:
    """Whole seconds as Go writes a duration, such as `50s`, `1m40s` or `8760h0m0s`."""
    return seconds_text(int(value))
