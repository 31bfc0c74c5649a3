"""Numbers and durations as people write them: `human_duration` in tables, `spoken_duration` in sentences.

Source: kubernetes/apimachinery: pkg/util/duration/duration.go (HumanDuration).
"""

from __future__ import annotations

INVALID = "<invalid>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_SPOKEN = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"))


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 server`, `2 servers`. `plural` where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def spoken_duration(seconds: float) -> str:
    """A duration in a sentence, in one unit: `90 s`, `2 min`, `3 h`. A clock that is ahead counts as none."""
    if 0 < seconds < 1:
        return f"{seconds:g} s"
    total = max(int(seconds), 0)
    for length, unit in _SPOKEN:
        if total >= 2 * length:
            return f"{total // length} {unit}"
    return f"{total} s"


def human_duration(seconds: float) -> str:
    """A duration in a table, as kubectl prints it: two units at most, fewer the longer it is; a clock two seconds ahead
    is forgiven."""
    if seconds <= -2:
        return INVALID
    total = max(int(seconds), 0)
    if total < 2 * _MINUTE:
        return f"{total}s"
    if total < 3 * _HOUR:
        return _two(total, _MINUTE, "m", 1, "s", fine=total < 10 * _MINUTE)
    if total < 2 * _DAY:
        return _two(total, _HOUR, "h", _MINUTE, "m", fine=total < 8 * _HOUR)
    if total < 2 * _YEAR:
        return _two(total, _DAY, "d", _HOUR, "h", fine=total < 8 * _DAY)
    return _two(total, _YEAR, "y", _DAY, "d", fine=total < 8 * _YEAR)


def _two(total: int, large: int, large_unit: str, small: int, small_unit: str, *, fine: bool) -> str:
    whole, rest = divmod(total, large)
    rest //= small
    return f"{whole}{large_unit}{rest}{small_unit}" if fine and rest else f"{whole}{large_unit}"
