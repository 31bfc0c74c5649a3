"""What functions take and give, as far as rules are checked before they are asked.

`A` stands for one type throughout a signature. What is not listed here is not checked.

Source: google/cel-spec: doc/langdef.md, "List of Standard Definitions"; kubernetes/apiserver: pkg/cel/library.
"""

from __future__ import annotations

from collections.abc import Iterable

from ironbell.codec.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    QUANTITY,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    URL,
    Type,
    fits,
    list_of,
    map_of,
    optional_of,
)

Signature = tuple[tuple[Type, ...], Type]

A = Type("A")
_LIST, _MAP, _OPT = list_of(A), map_of(A, Type("B")), optional_of(A)
_NUMBERS = (INT, UINT, DOUBLE)
_ORDERED = (BOOL, *_NUMBERS, STRING, BYTES, TIMESTAMP, DURATION)
_SIZED: list[Signature] = [((one,), INT) for one in (STRING, BYTES, _LIST, _MAP)]
_STRINGS = list_of(STRING)


def _each(names: Iterable[str], signatures: list[Signature]) -> dict[str, list[Signature]]:
    """The same signatures for several functions."""
    return dict.fromkeys(names, signatures)


def _same(types: tuple[Type, ...], result: Type | None = None) -> list[Signature]:
    return [((one, one), result or one) for one in types]


def _ordering() -> list[Signature]:
    return _same(_ORDERED, BOOL) + [((a, b), BOOL) for a in _NUMBERS for b in _NUMBERS if a != b]


OPERATORS: dict[str, list[Signature]] = {
    **_each(("<", "<=", ">", ">="), _ordering()),
    "==": [((A, A), BOOL)],
    "!=": [((A, A), BOOL)],
    "+": [
        *_same((*_NUMBERS, STRING, BYTES, DURATION)), ((_LIST, _LIST), _LIST), ((TIMESTAMP, DURATION), TIMESTAMP),
        ((DURATION, TIMESTAMP), TIMESTAMP),
    ],
    "-": [*_same((*_NUMBERS, DURATION)), ((TIMESTAMP, TIMESTAMP), DURATION), ((TIMESTAMP, DURATION), TIMESTAMP)],
    "*": _same(_NUMBERS),
    "/": _same(_NUMBERS),
    "%": _same((INT, UINT)),
    "&&": [((BOOL, BOOL), BOOL)],
    "||": [((BOOL, BOOL), BOOL)],
    "?:": [((BOOL, A, A), A)],
    "in": [((A, _LIST), BOOL), ((A, _MAP), BOOL)],
    "unary !": [((BOOL,), BOOL)],
    "unary -": [((INT,), INT), ((DOUBLE,), DOUBLE), ((DURATION,), DURATION)],
}  # fmt: skip
FUNCTION_TYPES: dict[str, list[Signature]] = {
    "size": _SIZED,
    "int": [((one,), INT) for one in (INT, UINT, DOUBLE, STRING, TIMESTAMP)],
    "uint": [((one,), UINT) for one in (INT, UINT, DOUBLE, STRING)],
    "double": [((one,), DOUBLE) for one in (INT, UINT, DOUBLE, STRING)],
    "string": [
        ((one,), STRING) for one in (INT, UINT, DOUBLE, STRING, BOOL, BYTES, TIMESTAMP, DURATION, IP, CIDR)
    ],
    "bytes": [((STRING,), BYTES), ((BYTES,), BYTES)],
    "bool": [((STRING,), BOOL), ((BOOL,), BOOL)],
    "dyn": [((A,), DYN)],
    "type": [((A,), TYPE)],
    "timestamp": [((STRING,), TIMESTAMP), ((INT,), TIMESTAMP), ((TIMESTAMP,), TIMESTAMP)],
    "duration": [((STRING,), DURATION), ((DURATION,), DURATION)],
    "url": [((STRING,), URL)],
    "isURL": [((STRING,), BOOL)],
    "quantity": [((STRING,), QUANTITY)],
    "isQuantity": [((STRING,), BOOL)],
    "ip": [((STRING,), IP)],
    "isIP": [((STRING,), BOOL)],
    "cidr": [((STRING,), CIDR)],
    "isCIDR": [((STRING,), BOOL)],
    "optional.of": [((A,), _OPT)],
    "optional.none": [((), optional_of(DYN))],
    "optional.ofNonZeroValue": [((A,), _OPT)],
    **_each(("sets.contains", "sets.equivalent", "sets.intersects"), [((_LIST, _LIST), BOOL)]),
    "ip.isCanonical": [((STRING,), BOOL)],
    "strings.quote": [((STRING,), STRING)],
    "lists.range": [((INT,), list_of(INT))],
    "jsonpatch.escapeKey": [((STRING,), STRING)],
}  # fmt: skip
_TIME = [((TIMESTAMP,), INT), ((TIMESTAMP, STRING), INT)]
METHOD_TYPES: dict[str, list[Signature]] = {
    "size": _SIZED,
    **_each(("contains", "startsWith", "endsWith", "matches"), [((STRING, STRING), BOOL)]),
    "find": [((STRING, STRING), STRING)],
    "findAll": [((STRING, STRING), _STRINGS), ((STRING, STRING, INT), _STRINGS)],
    **_each(("lowerAscii", "upperAscii", "trim"), [((STRING,), STRING)]),
    "replace": [((STRING, STRING, STRING), STRING), ((STRING, STRING, STRING, INT), STRING)],
    "split": [((STRING, STRING), _STRINGS), ((STRING, STRING, INT), _STRINGS)],
    "format": [((STRING, list_of(DYN)), STRING)],
    "join": [((_STRINGS,), STRING), ((_STRINGS, STRING), STRING)],
    "substring": [((STRING, INT), STRING), ((STRING, INT, INT), STRING)],
    "charAt": [((STRING, INT), STRING)],
    **_each(("indexOf", "lastIndexOf"), [((STRING, STRING), INT), ((STRING, STRING, INT), INT), ((_LIST, A), INT)]),
    "isSorted": [((list_of(one),), BOOL) for one in _ORDERED],
    "sum": [((list_of(one),), one) for one in (INT, UINT, DOUBLE, DURATION)],
    **_each(("min", "max"), [((list_of(one),), one) for one in _ORDERED]),
    "slice": [((_LIST, INT, INT), _LIST)],
    **_each(("distinct", "reverse"), [((_LIST,), _LIST)]),
    "sort": [((list_of(one),), list_of(one)) for one in _ORDERED],
    "flatten": [((list_of(_LIST),), _LIST), ((list_of(DYN), INT), list_of(DYN))],
    **_each(("first", "last"), [((_LIST,), _OPT)]),
    **_each(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), _TIME),
    **_each(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), [*_TIME, ((DURATION,), INT)]),
    **_each(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), [((URL,), STRING)]),
    "getQuery": [((URL,), map_of(STRING, _STRINGS))],
    "hasValue": [((_OPT,), BOOL)],
    "value": [((_OPT,), A)],
    "orValue": [((_OPT, A), A)],
    "or": [((_OPT, _OPT), _OPT)],
    "sign": [((QUANTITY,), INT)],
    "isInteger": [((QUANTITY,), BOOL)],
    "asInteger": [((QUANTITY,), INT)],
    "asApproximateFloat": [((QUANTITY,), DOUBLE)],
    **_each(("add", "sub"), [((QUANTITY, QUANTITY), QUANTITY), ((QUANTITY, INT), QUANTITY)]),
    **_each(("isLessThan", "isGreaterThan"), [((QUANTITY, QUANTITY), BOOL)]),
    "compareTo": [((QUANTITY, QUANTITY), INT)],
    "family": [((IP,), INT)],
    **_each(
        ("isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
        [((IP,), BOOL)],
    ),
    "containsIP": [((CIDR, IP), BOOL), ((CIDR, STRING), BOOL)],
    "containsCIDR": [((CIDR, CIDR), BOOL), ((CIDR, STRING), BOOL)],
    "ip": [((CIDR,), IP)],
    "masked": [((CIDR,), CIDR)],
    "prefixLength": [((CIDR,), INT)],
}


def matching(signatures: list[Signature], arguments: tuple[Type, ...]) -> list[Signature]:
    """The signatures that take the arguments."""
    return [one for one in signatures if _matched(one[0], one[1], arguments) is not None]


def result_of(signatures: list[Signature], arguments: tuple[Type, ...]) -> Type | None:
    """What a call gives; None if no signature takes the arguments."""
    results = [found for wanted, given in signatures if (found := _matched(wanted, given, arguments)) is not None]
    if not results:
        return None
    # An argument that may be anything leaves open which of several it is.
    return results[0] if all(one == results[0] for one in results) else DYN


def _matched(wanted: tuple[Type, ...], given: Type, arguments: tuple[Type, ...]) -> Type | None:
    if len(wanted) != len(arguments):
        return None
    bound: dict[str, Type] = {}
    if not all(_takes(one, argument, bound) for one, argument in zip(wanted, arguments, strict=True)):
        return None
    return _filled(given, bound)


def _takes(wanted: Type, given: Type, bound: dict[str, Type]) -> bool:
    if wanted.name in ("A", "B"):
        known = bound.get(wanted.name)
        if known is None or known == DYN:
            bound[wanted.name] = given
            return True
        # An empty list or map is one of anything until another tells of what.
        if known.of and all(one == DYN for one in known.of) and fits(known, given) and given != DYN:
            bound[wanted.name] = given
        return fits(known, given)
    if not wanted.of or "dyn" in (wanted.name, given.name):
        return fits(wanted, given)
    if wanted.name != given.name or len(wanted.of) != len(given.of):
        return False
    return all(_takes(one, part, bound) for one, part in zip(wanted.of, given.of, strict=True))


def _filled(given: Type, bound: dict[str, Type]) -> Type:
    if given.name in ("A", "B"):
        return bound.get(given.name, DYN)
    return Type(given.name, tuple(_filled(one, bound) for one in given.of)) if given.of else given
