"""A Kubernetes API in memory and a clock, for tests: small, synchronous underneath, and strict about versions.

What controllers can observe of a real server is here: resourceVersions and conflicts, generation, uids, merge, JSON and
apply patches, the status subresource, finalizers, preconditions of deletes, owner garbage collection, list in pages,
watch with resume, bookmarks and 410. What is not: schemas, defaulting, admission, access control, conversion, strategic
merge patches, conflicts between field managers (an apply takes over). The embedded API server has all of those.

None of its calls except iterating a watch ever waits, so its coroutines can be driven without an event loop.
Bodies in the store are never changed in place, which makes `copy` cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
import msgspec

from ironbell.api.client import (
    AlreadyExists,
    Answer,
    Api,
    ApiError,
    BadRequest,
    Call,
    Conflict,
    EventType,
    Invalid,
    ListOptions,
    MethodNotAllowed,
    NotFound,
    Page,
    PatchType,
    Preconditions,
    Propagation,
    UnsupportedMediaType,
    Verb,
    WatchEvent,
)
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock, ManualClock, rfc3339
from ironbell.base.labels import parse_selector
from ironbell.kube import patches
from ironbell.kube.decision import AnyKind, Fields, Key
from ironbell.kube.testing.journal import Journal

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class LoopClock:
    """Wall and monotonic time that pass with the loop that first asks. Metrics ask later, from anywhere."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()


_KEPT_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error


@dataclass
class MemoryApi(Journal, Api):
    """The API; `kinds` are those it serves (`serve` adds more)."""

    kinds: dict[Collection, AnyKind] = field(default_factory=dict)
    clock: Clock = field(default_factory=ManualClock)
    objects: dict[Collection, dict[Key, Fields]] = field(default_factory=dict)
    applied: dict[tuple[Collection, Key, str], Fields] = field(default_factory=dict)
    writes: int = 0
    create_errors: dict[Collection, ApiError] = field(default_factory=dict)
    """Errors for creates of objects of these kinds."""
    _uids: int = 0

    def serve(self, kinds: Iterable[AnyKind]) -> None:
        """Serve these kinds from now on."""
        for kind in kinds:
            self.kinds[kind.collection] = kind
            self.objects.setdefault(kind.collection, {})

    def unserve(self, kind: AnyKind) -> None:
        """Serve this kind no more, as when its definition is deleted: first its objects go."""
        for held in list(self.objects[kind.collection].values()):
            self._remove(kind.collection, held)
        del self.objects[kind.collection], self.kinds[kind.collection]
        self.disconnect()

    def copy(self, clock: Clock) -> MemoryApi:
        """An independent copy of the state, without its watchers."""
        return MemoryApi(
            version=self.version,
            history=list(self.history),
            compacted=self.compacted,
            kinds=dict(self.kinds),
            clock=clock,
            objects={where: dict(held) for where, held in self.objects.items()},
            applied=dict(self.applied),
            create_errors=dict(self.create_errors),
            _uids=self._uids,
        )

    async def call(self, call: Call) -> Answer:
        where, key = call.collection, (call.namespace, call.name)
        match call.verb:
            case Verb.GET:
                result = self._find(where, key)
            case Verb.LIST:
                return Answer(listed=self._list(where, call.namespace, call.selection))
            case Verb.CREATE if call.subresource:
                self._find(where, key)
                raise NotFound(f"{where.plural}/{call.subresource} is not served here")
            case Verb.CREATE:
                if where in self.create_errors:
                    raise self.create_errors[where]
                result = self._create(where, call.namespace, _decode(call.body))
            case Verb.UPDATE:
                result = self._update(where, self._find(where, key), _decode(call.body), call.subresource)
            case Verb.PATCH:
                result = self._patch(call)
            case Verb.DELETE:
                result = self._delete_if(call.preconditions, where, self._find(where, key), call.propagation)
            case _:
                raise MethodNotAllowed(f"{call.verb} is not served here")
        return Answer(msgspec.json.encode(result))

    def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        """Changes of any label: tests that watch by selectors use the embedded API."""
        self._served(call.collection)
        return self.changes_of(call.collection, call.namespace, call.selection.resource_version)

    def _list(self, where: Collection, namespace: str, options: ListOptions) -> Page:
        held = self._served(where)
        selector = parse_selector(options.selector.labels)
        chosen = [
            key
            for key in sorted(held)
            if (not namespace or key[0] == namespace) and selector.matches(held[key]["metadata"].get("labels") or {})
        ]
        start = int(options.continue_token or 0)
        end = start + options.limit if options.limit else len(chosen)
        items = [msgspec.json.encode(held[key]) for key in chosen[start:end]]
        return Page(items, str(self.version), str(end) if end < len(chosen) else "")

    def _patch(self, call: Call) -> Fields:
        where, key, change = call.collection, (call.namespace, call.name), _decode(call.body)
        if call.patch_type is PatchType.APPLY:
            return self._apply(where, key, change, call.subresource, call.options.field_manager)
        old = self._find(where, key)
        if call.patch_type is PatchType.MERGE:
            new = patches.apply(old, change)
        elif call.patch_type is PatchType.JSON:
            try:
                new = jsonpatch.apply_patch(old, change)
            except jsonpatch.JsonPatchException as error:
                raise Invalid(f"the patch does not apply: {error}") from error
        else:
            raise UnsupportedMediaType(f"{call.patch_type.value} is not served here; use a merge patch")
        return self._update(where, old, new, call.subresource)

    def _delete_if(self, must: Preconditions, where: Collection, old: Fields, propagation: Propagation) -> Fields:
        metadata = old["metadata"]
        if must.uid and must.uid != metadata["uid"]:
            raise Conflict(f"{where.plural} {metadata['name']!r}: the uid is {metadata['uid']}, not {must.uid}")
        if must.resource_version and must.resource_version != metadata["resourceVersion"]:
            raise Conflict(f"{where.plural} {metadata['name']!r} has been modified")
        return self._delete(where, old, propagation)

    def _served(self, where: Collection) -> dict[Key, Fields]:
        try:
            return self.objects[where]
        except KeyError:
            raise NotFound(f"{where.api_version} {where.plural} are not served") from None

    def _find(self, where: Collection, key: Key) -> Fields:
        try:
            return self._served(where)[key]
        except KeyError:
            raise NotFound(f"{where.plural} {key[1]!r} not found") from None

    def _create(self, where: Collection, namespace: str, body: Fields) -> Fields:
        held = self._served(where)
        self._uids += 1
        metadata = dict(body.get("metadata") or {})
        if not metadata.get("name"):
            metadata["name"] = f"{metadata.get('generateName', '')}{self._uids:05d}"
        if where.namespaced:
            metadata["namespace"] = namespace
        key = (namespace, metadata["name"])
        if key in held:
            raise AlreadyExists(f"{where.plural} {key[1]!r} already exists")
        now = rfc3339(self.clock.now())
        metadata |= {"uid": f"uid-{self._uids}", "creationTimestamp": now, "generation": 1}
        new = {**body, "metadata": metadata}
        if self.kinds[where].has_status:
            new.pop("status", None)
        return self._store(where, new, EventType.ADDED)

    def _update(self, where: Collection, old: Fields, proposed: Fields, subresource: str) -> Fields:
        old_metadata = old["metadata"]
        metadata = dict(proposed.get("metadata") or {})
        if metadata.get("resourceVersion", old_metadata["resourceVersion"]) not in (
            "",
            old_metadata["resourceVersion"],
        ):
            raise Conflict(f"{where.plural} {old_metadata['name']!r} has been modified; observe it again")
        if subresource == "status":
            new = {**old, "status": proposed.get("status")} if "status" in proposed else dict(old)
        else:
            for name in (*_KEPT_BY_SERVER, "name", "namespace", "resourceVersion"):
                metadata.pop(name, None)
                if name in old_metadata:
                    metadata[name] = old_metadata[name]
            new = {**proposed, "metadata": metadata}
            if self.kinds[where].has_status:
                new.pop("status", None)
                new |= {"status": old["status"]} if "status" in old else {}
        if new == old:
            return old
        return self._finish(where, old, new)

    def _finish(self, where: Collection, old: Fields, new: Fields) -> Fields:
        metadata = dict(new["metadata"])
        deleting = "deletionTimestamp" in metadata
        if deleting and set(metadata.get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ()):
            raise Invalid("metadata.finalizers: no new finalizers can be added while the object is being deleted")
        if _spec(new) != _spec(old):
            metadata["generation"] = metadata.get("generation", 0) + 1
        new = {**new, "metadata": metadata}
        if deleting and not metadata.get("finalizers"):
            return self._remove(where, new)
        return self._store(where, new, EventType.MODIFIED)

    def _apply(self, where: Collection, key: Key, body: Fields, subresource: str, manager: str) -> Fields:
        previous = self.applied.get((where, key, manager), {})
        dropped = _only_in(previous, body)
        try:
            old = self._find(where, key)
        except NotFound:
            self.applied[where, key, manager] = body
            return self._create(where, key[0], body)
        new = self._update(where, old, patches.apply(patches.apply(old, dropped), body), subresource)
        self.applied[where, key, manager] = body
        return new

    def _delete(self, where: Collection, old: Fields, propagation: Propagation) -> Fields:
        if propagation is Propagation.ORPHAN:
            self._orphan(old["metadata"]["uid"])
        if not old["metadata"].get("finalizers"):
            self._remove(where, old)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}
        if "deletionTimestamp" in old["metadata"]:
            return old
        metadata = {**old["metadata"], "deletionTimestamp": rfc3339(self.clock.now()), "deletionGracePeriodSeconds": 0}
        return self._store(where, {**old, "metadata": metadata}, EventType.MODIFIED)

    def _store(self, where: Collection, new: Fields, event: EventType) -> Fields:
        self.writes += 1
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.version + 1)}}
        key = (new["metadata"].get("namespace", ""), new["metadata"]["name"])
        self.objects[where][key] = new
        self.publish(where, WatchEvent(event, msgspec.json.encode(new), str(self.version + 1)), key[0])
        return new

    def _remove(self, where: Collection, old: Fields) -> Fields:
        self.writes += 1
        key = (old["metadata"].get("namespace", ""), old["metadata"]["name"])
        del self.objects[where][key]
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version + 1)}}
        self.publish(where, WatchEvent(EventType.DELETED, msgspec.json.encode(last), str(self.version + 1)), key[0])
        self._collect(old["metadata"]["uid"])
        return last

    def _collect(self, uid: str) -> None:
        """Delete what the removed object owned and nobody else owns."""
        living = {held["metadata"]["uid"] for by_key in self.objects.values() for held in by_key.values()}
        for where, held in self._owned(uid):
            if not any(owner["uid"] in living for owner in held["metadata"]["ownerReferences"]):
                self._delete(where, held, Propagation.BACKGROUND)

    def _orphan(self, uid: str) -> None:
        for where, held in self._owned(uid):
            rest = [owner for owner in held["metadata"]["ownerReferences"] if owner["uid"] != uid]
            self._store(where, {**held, "metadata": {**held["metadata"], "ownerReferences": rest}}, EventType.MODIFIED)

    def _owned(self, uid: str) -> tuple[tuple[Collection, Fields], ...]:
        return tuple(
            (where, held)
            for where, by_key in self.objects.items()
            for held in by_key.values()
            if any(owner["uid"] == uid for owner in held["metadata"].get("ownerReferences") or ())
        )


def _spec(body: Fields) -> Fields:
    return {name: value for name, value in body.items() if name not in ("metadata", "status")}


def _only_in(previous: Fields, current: Fields) -> Fields:
    """A merge patch that removes what `previous` has and `current` has not."""
    dropped: Fields = {}
    for name, value in previous.items():
        if name not in current:
            dropped[name] = None
        elif isinstance(value, dict) and isinstance(current[name], dict):
            inner = _only_in(value, current[name])
            if inner:
                dropped[name] = inner
    return dropped
