"""Plain data that is changed by copying: what is not touched is shared, what was given is never altered.

Source: kubernetes-sigs/cluster-api: internal/util/patch (CopyFields).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ironbell.controllers.capi.topology.errors import TopologyError
from ironbell.kube.decision import Fields

Path: TypeAlias = Sequence[str]
MISSING: Final = object()


def find(data: Any, path: Path) -> Any:
    """What is at a path; `MISSING` where there is nothing."""
    for name in path:
        if not isinstance(data, Mapping) or name not in data:
            return MISSING
        data = data[name]
    return data


def put(data: Mapping[str, Any], value: Any, path: Path) -> Fields:
    """The data with a value at a path; what stands in the way and is no object is replaced."""
    name, rest = path[0], path[1:]
    inner = data.get(name)
    return {**data, name: put(inner if isinstance(inner, Mapping) else {}, value, rest) if rest else value}


def without(data: Mapping[str, Any], path: Path) -> Fields:
    """The data without what is at a path."""
    name, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in data.items() if key != name}
    inner = data.get(name)
    return {**data, name: without(inner, rest)} if isinstance(inner, Mapping) else dict(data)


def copied(source: Fields, target: Fields, fields: Iterable[tuple[Path, Path]], kept: Iterable[Path] = ()) -> Fields:
    """The target with fields of the source (from path, to path); those in `kept` stay as the target has them.

    Raises:
        TopologyError: what is to be kept has no place in what was copied.
    """
    before = [(path, value) for path in kept if (value := find(target, path)) is not MISSING]
    for origin, destination in fields:
        value = find(source, origin)
        if value is not MISSING:
            target = put(target, value, destination)
    for path, value in before:
        target = _put_back(target, value, path)
    return target


def _put_back(data: Fields, value: Any, path: Path) -> Fields:
    for number in range(1, len(path)):
        inner = find(data, path[:number])
        if inner is not MISSING and not isinstance(inner, Mapping):
            name, what = ".".join(path), ".".join(path[:number])
            raise TopologyError(
                f'failed to apply patch to {kind_of(data)} {name_of(data)}: failed to set field "{name}": .{what} is no'
                " object"
            )
    return put(data, value, path)


def metadata_of(obj: Mapping[str, Any], name: str) -> dict[str, str]:
    """Labels or annotations of an object."""
    found = find(obj, ("metadata", name))
    return dict(found) if isinstance(found, Mapping) else {}


def name_of(obj: Mapping[str, Any]) -> str:
    """The name of an object."""
    found = find(obj, ("metadata", "name"))
    return found if isinstance(found, str) else ""


def kind_of(obj: Mapping[str, Any]) -> str:
    """The kind of an object."""
    found = obj.get("kind")
    return found if isinstance(found, str) else ""


def group_version(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Group and version in an object's apiVersion."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return group, version
