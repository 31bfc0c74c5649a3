"""The parts of one server, as one value that the verbs work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ironbell.api.client import EventType, WatchEvent
from ironbell.apiserver.actions import Actions
from ironbell.apiserver.admission import Admission
from ironbell.apiserver.connect import Connects
from ironbell.apiserver.rbac.authorizer import RbacAuthorizer
from ironbell.apiserver.request import Request
from ironbell.apiserver.resources import Convert, Converter, Resources
from ironbell.apiserver.schema.rules import CompileRule
from ironbell.apiserver.sharing import Shared
from ironbell.apiserver.store.store import Store
from ironbell.base.clock import Clock
from ironbell.base.randomness import Randomness

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
