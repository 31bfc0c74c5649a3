"""The parts of one server, as one value that the verbs work with, and the cache of values that many requests share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ironbell.api.client import EventType, WatchEvent
from ironbell.apiserver.admission import Admission
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.request import Request
from ironbell.apiserver.resources import Convert, Converter, Resources
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.subresources import Actions, Connects
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shared(Generic[K, V]):
    """Values by key, all of them dropped when they are too many or too large."""

    __slots__ = ("_bytes", "_most", "_most_bytes", "_values")

    def __init__(self, *, most: int = 256, most_bytes: int = 4 << 20) -> None:
        self._values: dict[K, V] = {}
        self._bytes = 0
        self._most, self._most_bytes = most, most_bytes

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def put(self, key: K, value: V, *, size: int) -> None:
        """Keep a value that takes `size` bytes."""
        if len(self._values) >= self._most or self._bytes + size > self._most_bytes:
            self._values.clear()
            self._bytes = 0
        self._values[key] = value
        self._bytes += size


__all__ = ["Context", "Request", "ShownKey"]

ShownKey = tuple[int, str, str, EventType]
"""A revision, and the group and version that show it."""


@dataclass
class Context:
    """The parts of one server."""

    store: Store
    clock: Clock
    randomness: Randomness
    resources: Resources = field(default_factory=Resources)
    admission: Admission = field(default_factory=Admission)
    connects: Connects = field(default_factory=Connects)
    actions: Actions = field(default_factory=Actions)
    authorizer: RbacAuthorizer = field(default_factory=RbacAuthorizer)
    compile_rule: CompileRule | None = None
    shown: Shared[ShownKey, WatchEvent] = field(default_factory=Shared)
    """Events that several watchers may get."""
    conversions: Mapping[str, Convert] = field(default_factory=dict)
    """By `plural.group`: between the versions of custom resources whose versions differ."""
    create_converter: Callable[[Mapping[str, Any]], Converter | None] = lambda _: None
    """Returns the converter of a definition that names a conversion webhook."""
