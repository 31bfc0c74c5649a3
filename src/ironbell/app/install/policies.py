"""Admission by the API server itself: the servers for machines write only what `app.write_rules` allows.

Roles apply to whole objects. The embedded API has the same limit in `app.site.wire_limits`; on other API servers it is
a ValidatingAdmissionPolicy, which needs no webhook and therefore cannot be unavailable.

Source: admissionregistration.k8s.io/v1, ValidatingAdmissionPolicy (Kubernetes 1.30 and later).
"""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ironbell.api.crd.document import crd_document
from ironbell.api.kind import Kind
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.app.components import Role
from ironbell.app.install.options import InstallOptions, Object, Unit, new_object
from ironbell.app.write_rules import EVENTS, TABLE, FieldPath, Writes, path_text, writes_of

_API = "admissionregistration.k8s.io/v1"
NAME = "ironbell-limit-servers"
_OPERATIONS = {"create": "CREATE", "patch": "UPDATE"}
_METADATA: Mapping[str, Any] = {"labels": {}, "annotations": {}, "finalizers": {}, "ownerReferences": {}}
_EVENT = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "series", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip

# An empty value is absent.
_SUBRESOURCE = "(has(request.subResource) ? request.subResource : '')"
_NAME = "(has(request.name) ? request.name : '')"

_Fields = Mapping[str, Any]
"""The fields of a part of an object, as a JSON schema has them in `properties`."""


def policies(options: InstallOptions) -> Iterator[Object]:
    """The policy with its binding, if servers for machines are installed."""
    units = [unit for unit in options.units if _serves(unit)]
    if not units:
        return
    users = {unit.word: options.user_of(unit) for unit in units}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": list(_resource_rules())},
        "matchConditions": [
            {"name": "by-servers", "expression": f"request.userInfo.username in {_list(users.values())}"}
        ],
        "validations": [validation for word, user in users.items() for validation in validations(word, user)],
    }
    yield new_object(_API, "ValidatingAdmissionPolicy", NAME, spec=spec)
    binding = {"policyName": NAME, "validationActions": ["Deny"]}
    yield new_object(_API, "ValidatingAdmissionPolicyBinding", NAME, spec=binding)


def _resource_rules() -> Iterator[Object]:
    groups = dict.fromkeys(row.where.group for row in TABLE)
    for group in groups:
        resources = dict.fromkeys(row.resource for row in TABLE if row.where.group == group)
        yield {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": sorted(_OPERATIONS.values()),
            "resources": list(resources),
        }


def validations(process: str, user: str) -> Iterator[Object]:
    """The expressions for one account: the writes that it may do to each resource, and a rejection of all others."""
    by_target: dict[tuple[str, str], list[Writes]] = {}
    for row in writes_of(process):
        by_target.setdefault((row.resource, row.verb), []).append(row)
    for target in dict.fromkeys((row.resource, verb) for row in TABLE for verb in _OPERATIONS):
        rows = by_target.get(target, [])
        resource, _, subresource = target[0].partition("/")
        elsewhere = (
            f"request.userInfo.username != '{user}' || request.resource.resource != '{resource}' || "
            f"{_SUBRESOURCE} != '{subresource}' || request.operation != '{_OPERATIONS[target[1]]}'"
        )
        yield _validation(elsewhere, _expression(rows), rows)


def _validation(elsewhere: str, expression: str, rows: Sequence[Writes]) -> Object:
    fields = ", ".join(dict.fromkeys(path_text(field) for row in rows for field in row.fields if field))
    limits = " ".join(dict.fromkeys(row.limit.text for row in rows if row.limit is not None))
    scope = f"may change only {fields}." if fields else "may not write this."
    message = " ".join(part for part in (scope if fields or not rows else "", limits) if part)
    return {
        "expression": f"{elsewhere} || ({expression})",
        "messageExpression": (
            f"request.userInfo.username + ', ' + request.resource.resource + ' ' + {_NAME} + ': ' + "
            f"{_text(message.replace('`', ''))}"
        ),
        "reason": "Forbidden",
    }


def _expression(rows: Sequence[Writes]) -> str:
    if not rows:
        return "false"
    limits = [row.limit.expression for row in rows if row.limit is not None]
    fields = [field for row in rows for field in row.fields]
    if () in fields:
        return " && ".join(limits) or "true"
    parts = _parts(rows[0])
    return " && ".join([*limits, *(_unchanged_fields(parts, fields, "object", "oldObject"))])


def _parts(row: Writes) -> _Fields:
    """The fields that a write of that resource can change; an API server ignores changes of others."""
    if row.where == EVENTS:
        return {"metadata": {"properties": _METADATA}, **{name: {} for name in _EVENT}}
    kinds: Mapping[str, Kind[Any]] = {HARDWARE.plural: HARDWARE, WORKFLOW.plural: WORKFLOW}
    schema = crd_document(kinds[row.where.plural])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    if row.subresource == "status":
        return {"status": schema["status"]}
    return {"metadata": {"properties": _METADATA}, "spec": schema["spec"], "status": schema["status"]}


def _unchanged_fields(fields: _Fields, allowed: Sequence[FieldPath], new: str, old: str) -> Iterator[str]:
    """Expressions that hold if no field but those allowed has changed."""
    for name, schema in fields.items():
        inside = [path[1:] for path in allowed if path and path[0] == name]
        a, b = f"{new}.{name}", f"{old}.{name}"
        if () in inside:
            continue
        if not inside and name != "metadata":  # some metadata is written by the API server: versions, managed fields
            yield f"has({a}) == has({b}) && (!has({a}) || {a} == {b})"
        elif "properties" in schema:
            yield from _unchanged_fields(schema["properties"], inside, a, b)
        elif "items" in schema:
            items = [path[1:] for path in inside]
            old_items, new_items = (_protected(schema, items, path, 0) for path in (b, a))
            yield f"has({a}) == has({b}) && (!has({a}) || {new_items} == {old_items})"
        else:
            yield from _unchanged_keys([path[0] for path in inside], a, b)


def _protected(schema: Mapping[str, Any], allowed: Sequence[FieldPath], items: str, depth: int) -> str:
    """A list whose items are the lists of their fields that may not change."""
    item = f"i{depth}"
    values = []
    for name, child in schema["items"]["properties"].items():
        inside = [path[1:] for path in allowed if path and path[0] == name]
        field = f"{item}.{name}"
        if () in inside:
            continue
        value = _protected(child, [path[1:] for path in inside], field, depth + 1) if inside else field
        values.append(f"has({field}) ? [dyn({value})] : []")
    return f"{items}.map({item}, [{', '.join(values)}])"


def _unchanged_keys(allowed: Sequence[str], new: str, old: str) -> Iterator[str]:
    """Expressions that hold if a map has changed only under keys that are allowed."""
    exact = [key for key in allowed if not key.endswith("*")]
    tests = [f"k in {_list(exact)}"] + [f"k.startsWith('{key[:-1]}')" for key in allowed if key.endswith("*")]
    may = " || ".join(tests)
    yield f"(!has({new}) || {new}.all(k, {may} || (has({old}) && k in {old} && {old}[k] == {new}[k])))"
    yield f"(!has({old}) || {old}.all(k, {may} || (has({new}) && k in {new})))"


def _list(values: Container[str]) -> str:
    return "[" + ", ".join(_text(value) for value in values) + "]"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _serves(unit: Unit) -> bool:
    return any(component.role is Role.SERVER for component in unit.components)
