"""Values inside variables, by paths such as `builtin.cluster.network.pods[0]`.

Source: kubernetes-sigs/cluster-api: core/reconcilers/topology/cluster/patches/variables/value.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ironbell.controllers.capi.topology.errors import TopologyError

_SEGMENT: Final = re.compile(r"([^\[\]]*)(?:\[(\d+)\].*)?", re.DOTALL)


def value_at(variables: Mapping[str, Any], path: str) -> Any:
    """The value at a path.

    Raises:
        TopologyError: the path is none, or leads nowhere.
    """
    value: Any = variables
    for number, segment in enumerate(path.split(".")):
        name, index = _parsed(segment, path)
        if not isinstance(value, Mapping) or name not in value:
            if number == 0:
                raise TopologyError(f'variable "{segment}" does not exist')
            raise TopologyError(f'variable "{path}" does not exist: failed to lookup segment "{name}"')
        value = value[name]
        if index is None:
            continue
        if not isinstance(value, list):
            raise TopologyError(f'variable "{path}" is invalid: failed to get array "{name}"')
        if len(value) <= index:
            raise TopologyError(f'variable "{path}" is invalid: array does not have index {index}')
        value = value[index]
    return value


def _parsed(segment: str, path: str) -> tuple[str, int | None]:
    found = _SEGMENT.fullmatch(segment)
    if found is None:
        raise TopologyError(f'variable "{path}" is invalid: failed to parse path segment "{segment}"')
    return found[1], None if found[2] is None else int(found[2])
