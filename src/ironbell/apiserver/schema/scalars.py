"""Checks of strings, numbers and enumerations.

Source: kubernetes/kube-openapi: pkg/validation/errors/schema.go (texts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironbell.apiserver.fielderrors import (
    FieldError,
    Path,
    invalid,
    not_supported,
    quoted,
    render,
    too_long,
    type_invalid,
    value_text,
)
from ironbell.apiserver.schema.formats import format_check, integer_range
from ironbell.codec.re2 import compile_pattern

Check = Callable[[Any, Path, list[FieldError]], None]

_SHORT, _KEPT = 100, 256
"""Limits of the cache of valid strings: a write repeats all names, reasons and times of an object, and most have been
checked before."""


def compile_enum(schema: Mapping[str, Any]) -> Check | None:
    values = schema.get("enum")
    if not values:
        return None
    # True equals 1 in Python, so the type is compared as well.
    allowed = [(type(value), value) for value in values]

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if (type(value), value) not in allowed:
            errors.append(not_supported(render(path), value, values))

    return check


def compile_string(schema: Mapping[str, Any]) -> Check | None:
    if schema.get("type") != "string" and not schema.get("x-kubernetes-int-or-string") and "type" in schema:
        return None
    length, pattern, form = _compile_length(schema), _compile_pattern(schema), _compile_format(schema)
    if pattern is None and form is None:
        return length and _of_strings(length)
    checks = [check for check in (length, pattern) if check is not None]
    good: set[str] = set()

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if value.__class__ is not str or value in good:
            return
        count = len(errors)
        for check_part in checks:
            check_part(value, path, errors)
            if len(errors) > count:
                break
        if form is not None:
            form(value, path, errors)
        if len(errors) == count and len(value) <= _SHORT:
            if len(good) >= _KEPT:
                good.clear()
            good.add(value)

    return check


def _of_strings(check: Check) -> Check:
    def check_string(value: Any, path: Path, errors: list[FieldError]) -> None:
        if value.__class__ is str:
            check(value, path, errors)

    return check_string


def _compile_length(schema: Mapping[str, Any]) -> Check | None:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if not least and most is None:
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        size = len(value)
        if most is not None and size > most:
            errors.append(too_long(render(path), most))
        elif size < least:
            where = render(path)
            errors.append(invalid(where, value, f"{where} in body should be at least {least} chars long"))

    return check


def _compile_pattern(schema: Mapping[str, Any]) -> Check | None:
    pattern = schema.get("pattern")
    if not pattern:
        return None
    matches = compile_pattern(pattern).matches

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if not matches(value):
            where = render(path)
            errors.append(invalid(where, value, f"{where} in body should match '{pattern}'"))

    return check


def _compile_format(schema: Mapping[str, Any]) -> Check | None:
    name = schema.get("format", "")
    accepts = format_check(name)
    if accepts is None:
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if not accepts(value):
            where = render(path)
            detail = f"{where} in body must be of type {name}: {quoted(value)}"
            errors.append(type_invalid(where, value, detail))

    return check


def compile_number(schema: Mapping[str, Any]) -> Check | None:
    least, most, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    span = integer_range(schema.get("format", "")) if schema.get("type") == "integer" else None
    if least is None and most is None and not factor and span is None:
        return None

    def faults(value: Any) -> list[str]:
        problems: list[str] = []
        if least is not None and (value < least or (above and value == least)):
            problems.append(f"greater than {'' if above else 'or equal to '}{value_text(least)}")
        if most is not None and (value > most or (below and value == most)):
            problems.append(f"less than {'' if below else 'or equal to '}{value_text(most)}")
        if factor and value % factor:
            problems.append(f"a multiple of {value_text(factor)}")
        return problems

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return
        where = ""
        for fault in faults(value):
            where = where or render(path)
            errors.append(invalid(where, value, f"{where} in body should be {fault}"))
        if span is not None and not span[0] <= value <= span[1]:
            detail = f"Checked value must be of type integer with format {schema['format']} in {render(path)}"
            errors.append(invalid("<nil>", "", detail))

    return check
