"""Admission: what may change or refuse a write after authorisation, before storage.

Plugins are plain async callables. Mutating ones run in the order of registration, on what the client sent, whatever
that is; then the object is held to its schema, and validating ones see only what fits it. A write whose object changed
underneath while plugins ran is decided again, and mutating plugins run a second time after one that says that what it
changed may concern those before it: so a plugin may run several times for one write and has no effects outside the
request.

Source: kubernetes/apiserver: pkg/admission/plugin/admission/reinvocation.go (the second round).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar

from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.resources import ResourceInfo

Kept = TypeVar("Kept")


class Operation(Enum):
    """What is being done to the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class Rounds:
    """The rounds in which mutating plugins see a request, and what they keep from the first for the second."""

    is_second: bool = False
    is_second_wanted: bool = False
    """Whether a plugin changed what those before it have seen."""
    _kept: dict[object, Any] = field(default_factory=dict)

    def kept(self, plugin: object, make: Callable[[], Kept]) -> Kept:
        """What a plugin keeps; made when it first asks."""
        if plugin not in self._kept:
            self._kept[plugin] = make()
        found: Kept = self._kept[plugin]
        return found


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """One write under review. `new` is None on delete, `old` is None on create; neither may be changed in place."""

    operation: Operation
    info: ResourceInfo
    namespace: str
    name: str
    identity: Identity
    new: dict[str, Any] | None
    old: dict[str, Any] | None = None
    subresource: str = ""
    dry_run: bool = False
    rounds: Rounds = field(default_factory=Rounds, compare=False)


Mutate = Callable[[AdmissionRequest], Awaitable["dict[str, Any] | None"]]
"""Gives the changed object, or None to leave it; raises an `ApiError` to refuse."""

Review = Callable[[AdmissionRequest], Awaitable[None]]
"""Raises an `ApiError` (usually `Forbidden` or `Invalid`) to refuse."""

Applies = Callable[[ResourceInfo], bool]


@dataclass
class Admission:
    """The registered plugins."""

    _mutating: list[tuple[Applies, Mutate]] = field(default_factory=list)
    _validating: list[tuple[Applies, Review]] = field(default_factory=list)

    def mutating(self, applies: Applies, plugin: Mutate) -> None:
        """Let `plugin` change writes to the resources for which `applies` holds."""
        self._mutating.append((applies, plugin))

    def validating(self, applies: Applies, plugin: Review) -> None:
        """Let `plugin` refuse writes to the resources for which `applies` holds."""
        self._validating.append((applies, plugin))

    def concerns(self, info: ResourceInfo) -> bool:
        """Whether any plugin wants to see writes to this resource."""
        return any(applies(info) for applies, _ in (*self._mutating, *self._validating))

    async def mutate(self, request: AdmissionRequest) -> dict[str, Any] | None:
        """The object after all mutating plugins."""
        request = await self._round(request)
        if request.rounds.is_second_wanted:
            request.rounds.is_second = True
            request = await self._round(request)
        return request.new

    async def _round(self, request: AdmissionRequest) -> AdmissionRequest:
        for applies, plugin in self._mutating:
            if applies(request.info):
                changed = await plugin(request)
                if changed is not None:
                    request = replace(request, new=changed)
        return request

    async def review(self, request: AdmissionRequest) -> None:
        """Ask all validating plugins."""
        for applies, plugin in self._validating:
            if applies(request.info):
                await plugin(request)
