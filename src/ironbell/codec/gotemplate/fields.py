"""Meaning of `.name` on each kind of value.

Source: golang/go: src/text/template/exec.go (evalField).
"""

from __future__ import annotations

from typing import Any

from ironbell.codec.gotemplate.errors import CallError
from ironbell.codec.gotemplate.functions import Function
from ironbell.codec.gotemplate.values import ANY_TYPE, NIL, Opaque, Pointer, Struct, dereference, type_name


def missing_in_nil(receiver: Any, name: str) -> str:
    """The message for a field of nothing."""
    if receiver is NIL:
        return f"nil pointer evaluating {ANY_TYPE}.{name}"
    return f'nil data; no entry for key "{name}"'


def field_of(receiver: Any, name: str, *, missing_is_error: bool = True) -> Any:
    """The element, field or method called `name`; a method is a `Function`, a nil element `NIL`.

    An element that a map does not have is None unless `missing_is_error`.

    Raises:
        CallError: there is none.
    """
    target = dereference(receiver)
    match target:
        case dict():
            if name not in target:
                if not missing_is_error:
                    return None
                raise CallError(f'map has no entry for key "{name}"')
            value = target[name]
            return NIL if value is None else value
        case Struct():
            if name in target.values:
                return target.values[name]
        case Opaque():
            if name in target.methods:
                method = target.methods[name]
                return method if isinstance(method, Function) else Function(name, (), None, method)
        case Pointer():
            raise CallError(f"nil pointer evaluating {type_name(receiver)}.{name}")
    raise CallError(f"can't evaluate field {name} in type {type_name(receiver)}")
