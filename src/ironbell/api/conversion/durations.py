"""Go's durations and whole seconds.

Source: kubernetes-sigs/cluster-api: api/core/v1beta2/conversion.go; golang/go: src/time/format.go.
"""

from __future__ import annotations

from typing import Any, Final

from ironbell.api.conversion.errors import ConversionError

MOST_SECONDS: Final = 2**31 - 1
_NANO: Final = 1_000_000_000


def to_seconds(value: Any) -> int:
    """A duration as Go writes it, such as `1h30m`, in whole seconds towards zero, as many as fit into 32 bits.

    Raises:
        ConversionError: it is no duration.
    """
    # The package as a whole first: another thread may be loading it from its other end.
    import ironbell.codec.gotemplate  # noqa: F401
    from ironbell.codec.gotemplate.gotime import parse_duration
    from ironbell.codec.gotemplate.timelayout import TimeError

    try:
        nanoseconds = parse_duration(value if isinstance(value, str) else "")
    except TimeError as error:
        raise ConversionError(f'failed to convert object: time: invalid duration "{value}"') from error
    whole = abs(nanoseconds) // _NANO
    return min(whole, MOST_SECONDS) if nanoseconds >= 0 else -whole


def from_seconds(value: Any) -> str:
    """Whole seconds as Go writes a duration, such as `50s`, `1m40s` or `8760h0m0s`."""
    sign, rest = ("-", -int(value)) if int(value) < 0 else ("", int(value))
    minutes, rest = divmod(rest, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
    return sign + text
