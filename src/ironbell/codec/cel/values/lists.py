"""Lists that a schema declares as sets or maps: their order has no meaning.

Source: kubernetes/apiserver: pkg/cel/common/values.go (unstructuredSetList, unstructuredMapList).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Equal = Callable[[Any, Any], bool]


class KeyedList(list[Any]):
    """A list whose items are told apart by `mark`; a sum replaces items of one mark, and adds the others."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self._keys = keys

    def mark(self, item: Any) -> Any:
        """Return the identity of an item: itself in a set, its keys in a map."""
        if self._keys:
            item = [item.get(key) for key in self._keys] if isinstance(item, dict) else None
        return msgspec.json.encode(item, order="sorted", enc_hook=str)

    def equals(self, other: list[Any], equal: Equal) -> bool:
        """Return whether another list has the same items, in any order."""
        marked = {self.mark(item): item for item in other}
        if len(self) != len(other) or len(marked) != len(other):
            return False
        return all(self.mark(item) in marked and equal(item, marked[self.mark(item)]) for item in self)

    def joined(self, other: list[Any]) -> KeyedList:
        items = {self.mark(item): item for item in self}
        return KeyedList(list((items | {self.mark(item): item for item in other}).values()), self._keys)
