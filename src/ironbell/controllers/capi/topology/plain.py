"""Plain data that is changed by copying: unchanged parts are shared, and the input is never altered.

Source: kubernetes-sigs/cluster-api: internal/util/patch (CopyFields).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ironbell.controllers.capi.topology.desired.model import TopologyError
from ironbell.kube.decision import Fields

Path: TypeAlias = Sequence[str]
MISSING: Final = object()


def find(data: Any, path: Path) -> Any:
    """The value at a path; `MISSING` if the path does not exist."""
    for name in path:
        if not isinstance(data, Mapping) or name not in data:
            return MISSING
        data = data[name]
    return data


def put(data: Mapping[str, Any], value: Any, path: Path) -> Fields:
    """The data with a value at a path; values on the path that are not objects are replaced."""
    name, rest = path[0], path[1:]
    inner = data.get(name)
    return {**data, name: put(inner if isinstance(inner, Mapping) else {}, value, rest) if rest else value}


def without(data: Mapping[str, Any], path: Path) -> Fields:
    """The data without the value at a path."""
    name, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in data.items() if key != name}
    inner = data.get(name)
    return {**data, name: without(inner, rest)} if isinstance(inner, Mapping) else dict(data)


def copied(source: Fields, target: Fields, fields: Iterable[tuple[Path, Path]], kept: Iterable[Path] = ()) -> Fields:
    """Copy fields of the source (from path, to path) to the target; the paths in `kept` stay unchanged in the target.

    Raises:
        TopologyError: a path to keep does not fit into the copied fields.
    """
    kept_values = [(path, value) for path in kept if (value := find(target, path)) is not MISSING]
    for origin, destination in fields:
        value = find(source, origin)
        if value is not MISSING:
            target = put(target, value, destination)
    for path, value in kept_values:
        target = _put_back(target, value, path)
    return target


def _put_back(data: Fields, value: Any, path: Path) -> Fields:
    for number in range(1, len(path)):
        inner = find(data, path[:number])
        if inner is not MISSING and not isinstance(inner, Mapping):
            name, parent = ".".join(path), ".".join(path[:number])
            raise TopologyError(
                f'failed to apply patch to {kind_of(data)} {name_of(data)}: failed to set field "{name}": .{parent} is'
                " not an object"
            )
    return put(data, value, path)


def metadata_of(obj: Mapping[str, Any], name: str) -> dict[str, str]:
    """Labels or annotations of an object."""
    texts = find(obj, ("metadata", name))
    return dict(texts) if isinstance(texts, Mapping) else {}


def name_of(obj: Mapping[str, Any]) -> str:
    """The name of an object."""
    name = find(obj, ("metadata", "name"))
    return name if isinstance(name, str) else ""


def kind_of(obj: Mapping[str, Any]) -> str:
    """The kind of an object."""
    kind = obj.get("kind")
    return kind if isinstance(kind, str) else ""


def group_version(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Group and version in an object's apiVersion."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return group, version
