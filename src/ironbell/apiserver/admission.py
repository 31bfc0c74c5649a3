"""Admission: plugins that may change or reject a write after authorisation, before storage.

Plugins are plain async callables. Mutating ones run in the order of registration, on what the client sent, whatever
that is; then the object is held to its schema, and validating ones see only what fits it. If the object changed while
plugins ran, the write is decided again. Mutating plugins run a second time if a plugin reports that its change may
concern the plugins before it. A plugin may therefore run several times for one write, and has no effects outside the
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
    """Operation on the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(slots=True)
class Rounds:
    """The rounds in which mutating plugins see a request, and what they keep from the first for the second."""

    is_second: bool = False
    needs_second_round: bool = False
    """Whether a plugin changed an object that the plugins before it have seen."""
    _kept: dict[object, Any] = field(default_factory=dict)

    def kept(self, plugin: object, create: Callable[[], Kept]) -> Kept:
        """Return what a plugin keeps; it is created on the plugin's first call."""
        if plugin not in self._kept:
            self._kept[plugin] = create()
        kept_value: Kept = self._kept[plugin]
        return kept_value


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
"""Returns the changed object, or None for no change; raises an `ApiError` to reject."""

Review = Callable[[AdmissionRequest], Awaitable[None]]
"""Raises an `ApiError` (usually `Forbidden` or `Invalid`) to reject the write."""

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
        """Let `plugin` reject writes to the resources for which `applies` holds."""
        self._validating.append((applies, plugin))

    def concerns(self, info: ResourceInfo) -> bool:
        """Return whether any plugin reviews writes to this resource."""
        return any(applies(info) for applies, _ in (*self._mutating, *self._validating))

    async def mutate(self, request: AdmissionRequest) -> dict[str, Any] | None:
        """The object after all mutating plugins."""
        request = await self._round(request)
        if request.rounds.needs_second_round:
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
        """Call all validating plugins."""
        for applies, plugin in self._validating:
            if applies(request.info):
                await plugin(request)
