"""Carrying out a decision's actions, in order, each with its precondition.

Used by the runtime and, with another way to perform effects, by the test kit. What was written is recorded even when
a later action fails, so that the runtime can hold the key back until the caches have caught up with it.

Failure modes: `OutOfDate` when the decision rests on state that has changed; whatever else the API answers; what a
performer raises; `EffectTimeoutError`; `DecisionError` for a defective decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from ironbell.api.client import (
    AlreadyExists,
    Api,
    Conflict,
    NotFound,
    PatchType,
    Preconditions,
    WriteOptions,
)
from ironbell.api.kind import Collection
from ironbell.base.errors import IronbellError
from ironbell.kube.decision import (
    Action,
    Apply,
    Create,
    DecisionError,
    Delete,
    Effect,
    Emit,
    Fields,
    JsonPatch,
    Key,
    MergePatch,
    Write,
)

PerformEffect: TypeAlias = Callable[[Effect], Awaitable[Sequence[Action]]]
EmitEvent: TypeAlias = Callable[[Emit], None]


class OutOfDate(IronbellError):  # noqa: N818 - a state, not a fault
    """Another client wrote first, or the caches were behind: observe again."""

    reason = "OutOfDate"


class EffectTimeoutError(IronbellError):
    """An effect did not end in its time; whether it happened is unknown."""

    reason = "EffectTimeout"


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Written(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decoder = msgspec.json.Decoder(_Written)
_encoder = msgspec.json.Encoder()
_VERSION: Final = b'"resourceVersion":"'


@dataclass(slots=True)
class Written:
    """Writes of one decision so far."""

    versions: dict[Collection, str] = field(default_factory=dict)
    """The last resourceVersion written, per kind."""
    removed: list[tuple[Collection, Key, str]] = field(default_factory=list)
    """Objects (kind, key, uid or empty) that were removed at once, which has no version."""
    outdated: list[tuple[Collection, Key, str]] = field(default_factory=list)
    """Objects (kind, key) of which the cache showed this version, empty for not at all, and the API has another."""
    count: int = 0
    failed: Write | None = None
    """The write that failed, other than by being out of date."""
    _after: dict[tuple[Collection, str, str, str], str] = field(default_factory=dict)

    def current(self, where: Collection, namespace: str, name: str, version: str) -> str:
        """The version that our own writes have made of an observed one."""
        while (following := self._after.get((where, namespace, name, version), version)) != version:
            version = following
        return version

    def record(self, write: Write, body: bytes, precondition: str) -> None:
        """Record the response to a write."""
        self.count += 1
        version = _version_of(body)
        if isinstance(write, Delete) and (not version or _decoder.decode(body).kind == "Status"):
            self.removed.append((write.kind.collection, (write.namespace, write.name), write.uid))
            return
        self.versions[write.kind.collection] = version
        if precondition and precondition != version and not isinstance(write, Create):
            self._after[(write.kind.collection, write.namespace, write.name, precondition)] = version


def _version_of(body: bytes) -> str:
    """The resourceVersion in an answer. Where there is one such field only it is found without reading all of the
    object, which costs as much as some of what follows from it. In a text the field's quotes would be escaped."""
    if body.count(_VERSION) != 1:
        return _decoder.decode(body).metadata.resource_version
    start = body.index(_VERSION) + len(_VERSION)
    return body[start : body.index(b'"', start)].decode()


@dataclass(frozen=True, slots=True)
class Executor:
    """Executes actions for one controller, under its identity and field manager."""

    api: Api
    field_manager: str
    perform: PerformEffect
    emit: EmitEvent
    breathe: Callable[[], Awaitable[None]] | None = None
    """Called between a write and the next: one commit wakes many writers, and what each of them does takes its time."""

    async def execute(self, actions: Sequence[Action], written: Written) -> None:
        """Carry out the actions. Cancellation point; cancelled, the action in progress may or may not have happened.

        Raises:
            OutOfDate: observe again.
            IronbellError: an action failed; those after it were not tried.
        """
        is_awoken = False
        for action in actions:
            if isinstance(action, Emit):
                self.emit(action)
            elif isinstance(action, Effect):
                outcome = await self.perform(action)
                if any(isinstance(following, Effect) for following in outcome):
                    raise DecisionError(f"performer {action.performer!r} returned another effect")
                await self.execute(outcome, written)
                is_awoken = False
            else:
                if is_awoken and self.breathe is not None:
                    await self.breathe()
                await self._write(action, written)
                is_awoken = True

    async def _write(self, write: Write, written: Written) -> None:
        expected = "" if isinstance(write, Create | Apply) else write.resource_version
        precondition = (
            written.current(write.kind.collection, write.namespace, _name(write), expected) if expected else ""
        )
        try:
            body = await self._send(write, precondition)
        except (Conflict, AlreadyExists) as error:
            if precondition or isinstance(write, Create):
                written.outdated.append((write.kind.collection, (write.namespace, _name(write)), precondition))
            raise OutOfDate(error.message) from error
        except NotFound as error:
            if isinstance(write, Delete):
                return
            if isinstance(write, MergePatch | JsonPatch):
                raise OutOfDate(error.message) from error
            written.failed = write
            raise
        except IronbellError:
            written.failed = write
            raise
        written.record(write, body, precondition)

    async def _send(self, write: Write, precondition: str) -> bytes:
        where = write.kind.collection
        if isinstance(write, Create):
            body = _encoder.encode(write.body)
            return await self.api.create(where, write.namespace, body, self._options())
        if isinstance(write, Delete):
            conditions = Preconditions(uid=write.uid, resource_version=precondition)
            return await self.api.delete(
                where, write.namespace, write.name, preconditions=conditions, propagation=write.propagation
            )
        patch_type, body = _patch_body(write, precondition)
        return await self.api.patch(
            where,
            write.namespace,
            write.name,
            body,
            patch_type=patch_type,
            subresource=write.subresource,
            options=self._options(force=isinstance(write, Apply) and write.force),
        )

    def _options(self, *, force: bool = False) -> WriteOptions:
        return WriteOptions(field_manager=self.field_manager, force=force)


def _patch_body(write: MergePatch | JsonPatch | Apply, precondition: str) -> tuple[PatchType, bytes]:
    if isinstance(write, JsonPatch):
        operations = list(write.operations)
        if precondition:
            # A replaced version is compared by the server: a stale one is a conflict, where `test` would be "invalid".
            guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": precondition}
            operations.insert(0, guard)
        return PatchType.JSON, _encoder.encode(operations)
    if isinstance(write, Apply):
        metadata = {**write.body.get("metadata", {}), "name": write.name}
        if write.namespace:
            metadata["namespace"] = write.namespace
        body = {**write.body, "apiVersion": write.kind.api_version, "kind": write.kind.kind, "metadata": metadata}
        return PatchType.APPLY, _encoder.encode(body)
    body = write.body
    if precondition:
        body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": precondition}}
    return PatchType.MERGE, _encoder.encode(body)


def _name(write: Write) -> str:
    if isinstance(write, Create):
        metadata: Fields = write.body.get("metadata", {})
        return str(metadata.get("name", ""))
    return write.name


async def perform_within_timeout(
    effect: Effect, performer: Callable[[Any], Awaitable[Sequence[Action]]]
) -> Sequence[Action]:
    """Run a performer for at most the effect's time.

    Raises:
        EffectTimeoutError: it took longer and was cancelled.
    """
    try:
        async with asyncio.timeout(effect.timeout_s):
            return await performer(effect.arguments)
    except TimeoutError as error:
        raise EffectTimeoutError(f"{effect.performer} did not end within {effect.timeout_s:g} s") from error
