"""The functions that text/template has by itself, and Tinkerbell's four.

Source: golang/go: src/text/template/funcs.go;
tinkerbell/tinkerbell: tink/controller/internal/workflow/template_funcs.go.
"""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import quote_plus

from ironbell.codec import goyaml
from ironbell.codec.gotemplate.compare import equal, less
from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.evaluate import AND_OR
from ironbell.codec.gotemplate.functions import Library, P
from ironbell.codec.gotemplate.golib import gojson
from ironbell.codec.gotemplate.golib.printf import sprintf
from ironbell.codec.gotemplate.golib.printing import sprint, sprintln
from ironbell.codec.gotemplate.golib.quoting import is_print
from ironbell.codec.gotemplate.values import (
    ANY_TYPE,
    NIL,
    Pointer,
    TypedMap,
    Uint8,
    dereference,
    encode,
    is_int,
    is_true,
    is_uint,
    type_name,
)

BUILTINS = Library()
_add = BUILTINS.add
_add("and or", P.VALUE, rest=P.VALUE)(AND_OR)
_add("not", P.VALUE)(lambda value: not is_true(value))


@_add("len", P.VALUE)
def _len(value: Any) -> int:
    value = dereference(value)
    if isinstance(value, str):
        return len(encode(value))
    if isinstance(value, list | dict):
        return len(value)
    if isinstance(value, Pointer):
        raise CallError("len of nil pointer")
    raise CallError(f"len of type {type_name(value)}")


@_add("index", P.VALUE, rest=P.VALUE)
def _index(item: Any, *indexes: Any) -> Any:
    if item is None:
        raise CallError("index of untyped nil")
    for index in indexes:
        item = _element(dereference(item), index)
    return item


def _element(item: Any, index: Any) -> Any:
    match item:
        case str():
            data = encode(item)
            return Uint8(data[_position(index, len(data))])
        case list():
            value = item[_position(index, len(item))]
            return NIL if value is None else value
        case dict():
            if not isinstance(index, str):
                raise CallError(f"value has type {type_name(index)}; should be string")
            value = item.get(index)
            if value is None and isinstance(item, TypedMap) and item.elem != ANY_TYPE:
                return ""
            return NIL if value is None else value
        case Pointer():
            raise CallError("index of nil pointer")
    raise CallError(f"can't index item of type {type_name(item)}")


def _position(index: Any, length: int) -> int:
    if not (is_int(index) or is_uint(index)):
        raise CallError(f"cannot index slice/array with type {type_name(index)}")
    if index < 0 or index >= length:
        raise CallError(f"index out of range: {int(index)}")
    return int(index)


@_add("call", P.VALUE, rest=P.VALUE)
def _call(function: Any, *_args: Any) -> Any:
    if function is None:
        raise CallError("call of nil")
    raise CallError(f"call of a non-function of type {type_name(function)}")


_add("print", rest=P.ANY)(lambda *values: sprint(values))
_add("println", rest=P.ANY)(lambda *values: sprintln(values))
_add("printf", P.STRING, rest=P.ANY)(lambda text, *values: sprintf(text, values))


def _as_text(values: tuple[Any, ...]) -> str:
    """Return the only string, or all operands as Print formats them, with pointers followed; empty without a value."""
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    operands = (dereference(value) for value in values)
    return sprint(tuple("<no value>" if value is None else value for value in operands))


_HTML = {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


_add("html", rest=P.ANY)(lambda *values: "".join(_HTML.get(char, char) for char in _as_text(values)))
_add("js", rest=P.ANY)(lambda *values: "".join(map(_js_char, _as_text(values))))


def _js_char(char: str) -> str:
    if char in _JS:
        return _JS[char]
    if char < " ":
        return f"\\u{ord(char):04X}"
    if char < "\x80" or is_print(char):
        return char
    return f"\\u{ord(char):04X}"


_add("urlquery", rest=P.ANY)(lambda *values: quote_plus(encode(_as_text(values)), safe="-_.~"))


@_add("eq", P.VALUE, rest=P.VALUE)
def _eq(left: Any, *rights: Any) -> bool:
    if not rights:
        raise CallError("missing argument for comparison")
    return any(equal(left, right) for right in rights)


_add("ne", P.VALUE, P.VALUE)(lambda left, right: not equal(left, right))
_add("lt", P.VALUE, P.VALUE)(less)
_add("le", P.VALUE, P.VALUE)(lambda left, right: less(left, right) or equal(left, right))
_add("gt", P.VALUE, P.VALUE)(lambda left, right: not (less(left, right) or equal(left, right)))
_add("ge", P.VALUE, P.VALUE)(lambda left, right: not less(left, right))


@_add("formatPartition", P.STRING, P.INT)
def format_partition(device: str, number: int) -> str:
    """The path of a disk's partition, by the naming rule that the disk's path shows."""
    if device.startswith("/dev/disk/"):
        return f"{device}-part{number}"
    infix = "p" if device and "0" <= device[-1] <= "9" else ""
    return f"{device}{infix}{number}"


@_add("netmaskToPrefixLength", P.STRING)
def _netmask_to_prefix_length(netmask: str) -> str:
    try:
        address = ipaddress.ip_address(netmask)
    except ValueError:
        raise CallError("invalid netmask format") from None
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        if mapped is None or "%" in netmask:
            raise CallError("netmask must be IPv4")
        address = mapped
    bits = f"{int(address):032b}"
    digits = len(bits.rstrip("0"))
    return str(digits) if "0" not in bits[:digits] else "0"


@_add("toYaml", P.ANY)
def _to_yaml(value: Any) -> str:
    try:
        # By way of JSON text read as YAML, as upstream does: that decides what is an integer and what has no form.
        text = goyaml.dump(goyaml.load(encode(gojson.marshal(value))), go_exact=True)
    except goyaml.YamlError as error:
        raise CallError(error.problem) from None
    return text.removesuffix("\n")


@_add("fromYaml", P.STRING)
def _from_yaml(text: str) -> Any:
    if not text:
        raise CallError("empty YAML input")
    try:
        return gojson.floats(goyaml.load(text))
    except goyaml.YamlError as error:
        raise CallError(f"line {error.line} of the text is not valid YAML") from None
