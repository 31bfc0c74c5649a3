"""Parameter and result types of functions, for checking rules before they are evaluated.

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
_SIZED: list[Signature] = [((type_,), INT) for type_ in (STRING, BYTES, _LIST, _MAP)]
_STRINGS = list_of(STRING)


def _overloads(names: Iterable[str], signatures: list[Signature]) -> dict[str, list[Signature]]:
    """The same signatures for several functions."""
    return dict.fromkeys(names, signatures)


def _binary_of(types: tuple[Type, ...], result: Type | None = None) -> list[Signature]:
    return [((type_, type_), result or type_) for type_ in types]


def _ordering() -> list[Signature]:
    return _binary_of(_ORDERED, BOOL) + [((a, b), BOOL) for a in _NUMBERS for b in _NUMBERS if a != b]


OPERATORS: dict[str, list[Signature]] = {
    **_overloads(("<", "<=", ">", ">="), _ordering()),
    "==": [((A, A), BOOL)],
    "!=": [((A, A), BOOL)],
    "+": [
        *_binary_of((*_NUMBERS, STRING, BYTES, DURATION)), ((_LIST, _LIST), _LIST), ((TIMESTAMP, DURATION), TIMESTAMP),
        ((DURATION, TIMESTAMP), TIMESTAMP),
    ],
    "-": [*_binary_of((*_NUMBERS, DURATION)), ((TIMESTAMP, TIMESTAMP), DURATION), ((TIMESTAMP, DURATION), TIMESTAMP)],
    "*": _binary_of(_NUMBERS),
    "/": _binary_of(_NUMBERS),
    "%": _binary_of((INT, UINT)),
    "&&": [((BOOL, BOOL), BOOL)],
    "||": [((BOOL, BOOL), BOOL)],
    "?:": [((BOOL, A, A), A)],
    "in": [((A, _LIST), BOOL), ((A, _MAP), BOOL)],
    "unary !": [((BOOL,), BOOL)],
    "unary -": [((INT,), INT), ((DOUBLE,), DOUBLE), ((DURATION,), DURATION)],
}  # fmt: skip
FUNCTION_TYPES: dict[str, list[Signature]] = {
    "size": _SIZED,
    "int": [((type_,), INT) for type_ in (INT, UINT, DOUBLE, STRING, TIMESTAMP)],
    "uint": [((type_,), UINT) for type_ in (INT, UINT, DOUBLE, STRING)],
    "double": [((type_,), DOUBLE) for type_ in (INT, UINT, DOUBLE, STRING)],
    "string": [
        ((type_,), STRING) for type_ in (INT, UINT, DOUBLE, STRING, BOOL, BYTES, TIMESTAMP, DURATION, IP, CIDR)
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
    **_overloads(("sets.contains", "sets.equivalent", "sets.intersects"), [((_LIST, _LIST), BOOL)]),
    "ip.isCanonical": [((STRING,), BOOL)],
    "strings.quote": [((STRING,), STRING)],
    "lists.range": [((INT,), list_of(INT))],
    "jsonpatch.escapeKey": [((STRING,), STRING)],
}  # fmt: skip
_TIME = [((TIMESTAMP,), INT), ((TIMESTAMP, STRING), INT)]
METHOD_TYPES: dict[str, list[Signature]] = {
    "size": _SIZED,
    **_overloads(("contains", "startsWith", "endsWith", "matches"), [((STRING, STRING), BOOL)]),
    "find": [((STRING, STRING), STRING)],
    "findAll": [((STRING, STRING), _STRINGS), ((STRING, STRING, INT), _STRINGS)],
    **_overloads(("lowerAscii", "upperAscii", "trim"), [((STRING,), STRING)]),
    "replace": [((STRING, STRING, STRING), STRING), ((STRING, STRING, STRING, INT), STRING)],
    "split": [((STRING, STRING), _STRINGS), ((STRING, STRING, INT), _STRINGS)],
    "format": [((STRING, list_of(DYN)), STRING)],
    "join": [((_STRINGS,), STRING), ((_STRINGS, STRING), STRING)],
    "substring": [((STRING, INT), STRING), ((STRING, INT, INT), STRING)],
    "charAt": [((STRING, INT), STRING)],
    **_overloads(
        ("indexOf", "lastIndexOf"), [((STRING, STRING), INT), ((STRING, STRING, INT), INT), ((_LIST, A), INT)]
    ),
    "isSorted": [((list_of(type_),), BOOL) for type_ in _ORDERED],
    "sum": [((list_of(type_),), type_) for type_ in (INT, UINT, DOUBLE, DURATION)],
    **_overloads(("min", "max"), [((list_of(type_),), type_) for type_ in _ORDERED]),
    "slice": [((_LIST, INT, INT), _LIST)],
    **_overloads(("distinct", "reverse"), [((_LIST,), _LIST)]),
    "sort": [((list_of(type_),), list_of(type_)) for type_ in _ORDERED],
    "flatten": [((list_of(_LIST),), _LIST), ((list_of(DYN), INT), list_of(DYN))],
    **_overloads(("first", "last"), [((_LIST,), _OPT)]),
    **_overloads(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), _TIME),
    **_overloads(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), [*_TIME, ((DURATION,), INT)]),
    **_overloads(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), [((URL,), STRING)]),
    "getQuery": [((URL,), map_of(STRING, _STRINGS))],
    "hasValue": [((_OPT,), BOOL)],
    "value": [((_OPT,), A)],
    "orValue": [((_OPT, A), A)],
    "or": [((_OPT, _OPT), _OPT)],
    "sign": [((QUANTITY,), INT)],
    "isInteger": [((QUANTITY,), BOOL)],
    "asInteger": [((QUANTITY,), INT)],
    "asApproximateFloat": [((QUANTITY,), DOUBLE)],
    **_overloads(("add", "sub"), [((QUANTITY, QUANTITY), QUANTITY), ((QUANTITY, INT), QUANTITY)]),
    **_overloads(("isLessThan", "isGreaterThan"), [((QUANTITY, QUANTITY), BOOL)]),
    "compareTo": [((QUANTITY, QUANTITY), INT)],
    "family": [((IP,), INT)],
    **_overloads(
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
    return [signature for signature in signatures if _matched(*signature, arguments) is not None]


def result_of(signatures: list[Signature], arguments: tuple[Type, ...]) -> Type | None:
    """Return the result type of a call; None if no signature takes the arguments."""
    results = [
        result for parameters, given in signatures if (result := _matched(parameters, given, arguments)) is not None
    ]
    if not results:
        return None
    # An argument that may be anything leaves open which of several it is.
    return results[0] if all(result == results[0] for result in results) else DYN


def _matched(parameters: tuple[Type, ...], given: Type, arguments: tuple[Type, ...]) -> Type | None:
    if len(parameters) != len(arguments):
        return None
    bound: dict[str, Type] = {}
    if not all(_takes(type_, argument, bound) for type_, argument in zip(parameters, arguments, strict=True)):
        return None
    return _filled(given, bound)


def _takes(parameter: Type, given: Type, bound: dict[str, Type]) -> bool:
    if parameter.name in ("A", "B"):
        known = bound.get(parameter.name)
        if known is None or known == DYN:
            bound[parameter.name] = given
            return True
        # An empty list or map has any element type until another argument determines it.
        if known.of and all(type_ == DYN for type_ in known.of) and fits(known, given) and given != DYN:
            bound[parameter.name] = given
        return fits(known, given)
    if not parameter.of or "dyn" in (parameter.name, given.name):
        return fits(parameter, given)
    if parameter.name != given.name or len(parameter.of) != len(given.of):
        return False
    return all(_takes(type_, part, bound) for type_, part in zip(parameter.of, given.of, strict=True))


def _filled(given: Type, bound: dict[str, Type]) -> Type:
    if given.name in ("A", "B"):
        return bound.get(given.name, DYN)
    return Type(given.name, tuple(_filled(type_, bound) for type_ in given.of)) if given.of else given
