"""Functions and methods, by name: CEL's standard ones, and those of Kubernetes that schemas use.

A method gets its target as the first argument, and its arguments are paid for; what makes more of them than they are
pays for that itself.

Source: google/cel-spec: doc/langdef.md, "List of Standard Definitions"; kubernetes/apiserver: pkg/cel/library;
google/cel-go: ext/strings.go.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from ironbell.codec import re2
from ironbell.codec.cel.errors import CelError, NoOverloadError
from ironbell.codec.cel.functions.formatting import formatted
from ironbell.codec.cel.functions.library import LIBRARY_FUNCTIONS, LIBRARY_METHODS
from ironbell.codec.cel.tokens import Uint
from ironbell.codec.cel.values.network import Network
from ironbell.codec.cel.values.values import equal, less, number_of, pay_for_characters, type_name

Function = Callable[..., Any]


def _typed(name: str, *types: type) -> Callable[[Function], Function]:
    """Check argument types first: a wrong one is a missing overload."""

    def wrap(function: Function) -> Function:
        def checked(*arguments: Any) -> Any:
            if len(arguments) != len(types) or any(
                expected is not object and type(value) is not expected
                for value, expected in zip(arguments, types, strict=True)
            ):
                raise NoOverloadError(f"{name}({', '.join(type_name(value) for value in arguments)})")
            return function(*arguments)

        return checked

    return wrap


def _need(name: str, *arguments: tuple[Any, type]) -> None:
    """Check the types of arguments, some of which may have been left out."""
    if any(type(value) is not expected for value, expected in arguments):
        raise NoOverloadError(f"{name}({', '.join(type_name(value) for value, _ in arguments)})")


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    raise NoOverloadError(f"size({type_name(value)})")


def _matches(text: str, pattern: str) -> bool:
    return _regex(pattern).matches(text)


def _find(text: str, pattern: str) -> str:
    return next(_regex(pattern).find_all(text), "")


def _find_all(text: Any, pattern: Any, most: Any = -1) -> list[str]:
    _need("findAll", (text, str), (pattern, str), (most, int))
    matches = _regex(pattern).find_all(text)
    return list(matches if most < 0 else itertools.islice(matches, most))


def _regex(pattern: str) -> re2.Pattern:
    try:
        return re2.compile_pattern(pattern)
    except re2.PatternError as error:
        raise CelError(str(error)) from error


def _replace(text: Any, old: Any, new: Any, most: Any = -1) -> str:
    _need("replace", (text, str), (old, str), (new, str), (most, int))
    # Ten replacements of one letter by ten make a gigabyte of a letter.
    pay_for_characters(text.count(old) * len(new))
    replaced: str = text.replace(old, new, max(most, -1))
    return replaced


def _split(text: Any, by: Any, most: Any = -1) -> list[str]:
    _need("split", (text, str), (by, str), (most, int))
    if most == 0:
        return []
    if by:
        pieces: list[str] = text.split(by, most - 1 if most > 0 else -1)
        return pieces
    return list(text) if most < 0 or most >= len(text) else [*text[: most - 1], text[most - 1 :]]


def _join(values: Any, by: str = "") -> str:
    parts = [_string(value) for value in values]
    pay_for_characters(sum(map(len, parts)) + len(by) * len(parts))
    return by.join(parts)


def _int(value: Any) -> int:
    if isinstance(value, datetime):
        return int(value.timestamp())
    number = _whole(value) if isinstance(value, str) else number_of(value)
    if number is None or number != number or not -(1 << 63) <= number < (1 << 63):
        raise CelError(f"cannot make an int of {value!r}")
    return int(number)


def _uint(value: Any) -> Uint:
    number = _whole(value) if isinstance(value, str) and value.isdecimal() else number_of(value)
    if number is None or number != number or not 0 <= number < (1 << 64):
        raise CelError(f"cannot make a uint of {value!r}")
    return Uint(int(number))


def _whole(text: str) -> int | None:
    """Return the number that a text of digits is; None for another text. 64 bits hold no more digits than these."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,4000}", text) else None


def _double(value: Any) -> float:
    try:
        number = float(value) if isinstance(value, str) else number_of(value)
    except ValueError:
        number = None
    if number is None:
        raise CelError(f"cannot make a double of {value!r}")
    return float(number)


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise CelError("bytes are not UTF-8") from error
    number = number_of(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, IPv4Address | IPv6Address):
        return str(value)
    if isinstance(value, Network):
        return str(value.interface)
    if number is None:
        raise CelError(f"cannot make a string of {type_name(value)}")
    return repr(number).removesuffix(".0") if isinstance(number, float) else str(number)


def _url(value: Any) -> SplitResult:
    parts = _url_or_none(value)
    if parts is None:
        raise CelError(f"{value!r} is no URL")
    return parts


def _url_or_none(value: Any) -> SplitResult | None:
    """An absolute URI or an absolute path, as Go's `url.ParseRequestURI` takes it."""
    if not isinstance(value, str) or not value or any(ord(c) < 0x21 or ord(c) == 0x7F for c in value):
        return None
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme or value.startswith("/") else None


def _url_part(name: str) -> Function:
    def component(value: Any) -> str:
        if not isinstance(value, SplitResult):
            raise NoOverloadError(f"{name}({type_name(value)})")
        return {
            "getScheme": value.scheme,
            "getHost": value.netloc.rpartition("@")[2],
            "getHostname": value.hostname or "",
            "getPort": str(value.port or ""),
            "getEscapedPath": value.path,
        }[name]

    return component


def _sorted(values: list[Any]) -> bool:
    return all(not less(after, previous) for previous, after in itertools.pairwise(values))


def _extreme(*, lowest: bool) -> Function:
    def find(values: Any) -> Any:
        if not isinstance(values, list) or not values:
            raise CelError("min and max need a list that is not empty")
        best = values[0]
        for value in values[1:]:
            if less(value, best) if lowest else less(best, value):
                best = value
        return best

    return find


def _index_of(values: Any, expected: Any, start: Any = None) -> int:
    if isinstance(values, str) and isinstance(expected, str):
        place = _start(start)
        return place if not expected else values.find(expected, place)
    if isinstance(values, list) and start is None:
        return next((place for place, value in enumerate(values) if equal(value, expected)), -1)
    raise NoOverloadError(f"indexOf({type_name(values)})")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in {"true", "True", "TRUE", "t", "1"}:
        return True
    if value in {"false", "False", "FALSE", "f", "0"}:
        return False
    raise CelError(f"type conversion error from '{type_name(value)}' to 'bool'")


def _char_at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise CelError(f"index out of range: {place}")
    return text[place : place + 1]


def _start(place: Any) -> int:
    if place is not None and (type(place) is not int or place < 0):
        raise CelError(f"index out of range: {place}")
    return place or 0


def _last_index_of(values: Any, expected: Any, start: Any = None) -> int:
    if isinstance(values, str) and isinstance(expected, str):
        if start is None:
            return values.rfind(expected)
        place = _start(start)
        if not expected or place >= len(values):
            return -1 if expected else place
        return values.rfind(expected, 0, place + len(expected))
    if isinstance(values, list) and start is None:
        matches = [place for place, value in enumerate(values) if equal(value, expected)]
        return matches[-1] if matches else -1
    raise NoOverloadError(f"lastIndexOf({type_name(values)})")


def _query(value: Any) -> dict[str, list[str]]:
    if not isinstance(value, SplitResult):
        raise NoOverloadError(f"getQuery({type_name(value)})")
    return parse_qs(value.query, keep_blank_values=True)


def _sum(values: Any) -> Any:
    if not isinstance(values, list) or any(number_of(value) is None for value in values):
        raise CelError("sum needs a list of numbers")
    return sum(number_of(value) or 0 for value in values)


def _substring(text: Any, start: Any, end: Any = None) -> str:
    end = len(text) if end is None else end
    if (
        not isinstance(text, str)
        or type(start) is not int
        or type(end) is not int
        or not 0 <= start <= end <= len(text)
    ):
        raise CelError(f"substring({start}, {end}) is out of range")
    return text[start:end]


FUNCTIONS: dict[str, Function] = {
    **LIBRARY_FUNCTIONS,
    "size": _size,
    "int": _int,
    "uint": _uint,
    "double": _double,
    "string": _string,
    "bytes": lambda value: value.encode() if isinstance(value, str) else value,
    "bool": _bool,
    "dyn": lambda value: value,
    "type": type_name,
    "url": _url,
    "isURL": lambda value: _url_or_none(value) is not None,
}

METHODS: dict[str, Function] = {
    **LIBRARY_METHODS,
    "size": _size,
    "contains": _typed("contains", str, str)(lambda text, part: part in text),
    "startsWith": _typed("startsWith", str, str)(lambda text, part: text.startswith(part)),
    "endsWith": _typed("endsWith", str, str)(lambda text, part: text.endswith(part)),
    "matches": _typed("matches", str, str)(_matches),
    "find": _typed("find", str, str)(_find),
    "findAll": _find_all,
    "lowerAscii": _typed("lowerAscii", str)(str.lower),
    "upperAscii": _typed("upperAscii", str)(str.upper),
    "trim": _typed("trim", str)(str.strip),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": formatted,
    "substring": _substring,
    "charAt": _typed("charAt", str, int)(_char_at),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "getQuery": _query,
    "isSorted": _sorted,
    "min": _extreme(lowest=True),
    "max": _extreme(lowest=False),
    "sum": _sum,
    **{name: _url_part(name) for name in ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath")},
}

CONSTANT_TIME = frozenset({FUNCTIONS["size"], FUNCTIONS["type"], FUNCTIONS["dyn"]})
"""Functions whose cost does not depend on their arguments."""
