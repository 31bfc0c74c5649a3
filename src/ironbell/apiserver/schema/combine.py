"""allOf, anyOf, oneOf and not: value checks over the same value.

Source: kubernetes/kube-openapi: pkg/validation/validate/schema_props.go, schema_messages.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironbell.apiserver.fielderrors import FieldError, Path, invalid, quoted, render

Check = Callable[[Any, Path, list[FieldError]], None]
CompileCheck = Callable[[Mapping[str, Any]], Check | None]

_NO_FIELD = "<nil>"
"""The field path of errors in combinations: Kubernetes gives them none."""


def compile_combined(schema: Mapping[str, Any], compile_check: CompileCheck) -> Check | None:
    """The combinations of a schema node as one check, or None if there are none."""
    if schema.get("x-kubernetes-int-or-string"):
        schema = {key: value for key, value in schema.items() if key != "anyOf"} | _other_any_of(schema)
    every = _compile_all(schema.get("allOf", ()), compile_check)
    some = _compile_all(schema.get("anyOf", ()), compile_check)
    one_of = _compile_all(schema.get("oneOf", ()), compile_check)
    never = compile_check(schema["not"]) if "not" in schema else None
    rejects_all = "not" in schema and never is None
    if not (every or some or one_of or never or rejects_all):
        return None

    def check(value: Any, path: Path, errors: list[FieldError]) -> None:
        if every:
            _check_all(every, value, path, errors)
        if some and not any(_holds(option, value, path) for option in some):
            _fault(path, "must validate at least one schema (anyOf)", errors)
            _report_first(some, value, path, errors)
        if one_of:
            _check_one(one_of, value, path, errors)
        if rejects_all or (never is not None and _holds(never, value, path)):
            _fault(path, "must not validate the schema (not)", errors)

    return check


def _other_any_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    # The pair integer/string beside x-kubernetes-int-or-string repeats the extension.
    options = schema.get("anyOf", ())
    plain = [option for option in options if set(option) == {"type"}]
    return {} if len(plain) == len(options) else {"anyOf": list(options)}


def _compile_all(schemas: Any, compile_check: CompileCheck) -> list[Check | None]:
    return [compile_check(schema) for schema in schemas]


def _holds(check: Check | None, value: Any, path: Path) -> bool:
    if check is None:
        return True
    problems: list[FieldError] = []
    check(value, path, problems)
    return not problems


def _check_all(checks: list[Check | None], value: Any, path: Path, errors: list[FieldError]) -> None:
    failed = 0
    for check in checks:
        count = len(errors)
        if check is not None:
            check(value, path, errors)
        failed += len(errors) > count
    if failed:
        none = ". None validated" if failed == len(checks) else ""
        _fault(path, f"must validate all the schemas (allOf){none}", errors)


def _check_one(checks: list[Check | None], value: Any, path: Path, errors: list[FieldError]) -> None:
    count = sum(_holds(check, value, path) for check in checks)
    if count != 1:
        matches = f"Found {count} valid alternatives" if count else "Found none valid"
        _fault(path, f"must validate one and only one schema (oneOf). {matches}", errors)
        if not count:
            _report_first(checks, value, path, errors)


def _report_first(checks: list[Check | None], value: Any, path: Path, errors: list[FieldError]) -> None:
    """Report the errors of the first alternative, if no alternative holds."""
    if checks[0] is not None:
        checks[0](value, path, errors)


def _fault(path: Path, text: str, errors: list[FieldError]) -> None:
    place = render(path)
    errors.append(msgspec.structs.replace(invalid(_NO_FIELD, "", f"{quoted(place)} {text}"), place=place))
