"""The operations of a JSON patch that classes support: add, replace, remove.

`replace` and `remove` need an existing target; `add` creates the last step of a path and no other. In a list `-` is the
place behind its end. An empty step means the object that it is in.

Source: RFC 6902; evanphx/json-patch v5: patch.go, which upstream applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbell.controllers.capi.topology.desired.model import TopologyError
from ironbell.kube.decision import Fields


def applied(document: Fields, operations: Sequence[Fields]) -> Fields:
    """The document with all operations applied, in order; the input is not changed.

    Raises:
        TopologyError: a path does not exist in the document.
    """
    result: Any = document
    for operation in operations:
        path = str(operation["path"])
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
        if not steps:
            raise TopologyError(f"JSON patch {operation['op']} {path!r}: the whole object cannot be changed")
        result = _changed(result, steps, operation)
    whole: Fields = result
    return whole


def _changed(data: Any, steps: Sequence[str], operation: Fields) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(data, dict):
        if rest:
            if not step:
                return _changed(data, rest, operation)
            if step not in data:
                raise _missing(operation)
            return {**data, step: _changed(data[step], rest, operation)}
        return _changed_field(data, step, operation)
    if isinstance(data, list):
        return _changed_list(data, step, rest, operation)
    raise _missing(operation)


def _changed_field(data: Fields, name: str, operation: Fields) -> Fields:
    op = operation["op"]
    if op != "add" and name not in data and (name or op == "remove"):
        raise _missing(operation)
    if op == "remove":
        return {key: value for key, value in data.items() if key != name}
    return {**data, name: operation.get("value")}


def _changed_list(data: list[Any], step: str, rest: Sequence[str], operation: Fields) -> list[Any]:
    op = operation["op"]
    if step == "-" and op == "add" and not rest:
        return [*data, operation.get("value")]
    index = _index(step, operation)
    limit = len(data) + 1 if op == "add" and not rest else len(data)
    if index < 0:
        index += limit
    if not 0 <= index < limit:
        raise _missing(operation)
    if rest:
        return [*data[:index], _changed(data[index], rest, operation), *data[index + 1 :]]
    if op == "add":
        return [*data[:index], operation.get("value"), *data[index:]]
    new = [] if op == "remove" else [operation.get("value")]
    return [*data[:index], *new, *data[index + 1 :]]


def _index(step: str, operation: Fields) -> int:
    try:
        return int(step)
    except ValueError:
        raise _missing(operation) from None


def _missing(operation: Fields) -> TopologyError:
    return TopologyError(
        f"error applying json patch (RFC6902): {operation['op']} operation does not apply: doc is missing path:"
        f" {operation['path']}"
    )
