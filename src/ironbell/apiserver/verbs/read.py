"""Get, list and watch: answered from memory.

A continued list shows the state of its first page: what changed since is undone from the history in memory.

Source: kubernetes/apiserver: pkg/storage/etcd3/store.go (continue), pkg/storage/cacher (bookmarks).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Iterator

import msgspec

from ironbell.api.client import BadRequest, EventType, Expired, ListOptions, Page, Selector, WatchEvent
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.selectors import Match, compile_selector
from ironbell.apiserver.store.entry import Change, Entry, Key
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.store.watch import Feed
from ironbell.apiserver.verbs.bodies import body_of

BOOKMARK_SECONDS = 60.0
_TURN = 256
"""After so many steps of a long answer, others get a turn."""


class _Continue(msgspec.Struct, frozen=True, array_like=True):
    version: int
    namespace: str
    name: str


def get(context: Context, request: Request) -> bytes:
    """One object."""
    entry = context.store.get(request.info.store_key, request.key)
    if entry is None:
        raise status.not_found(request.info, request.name)
    return body_of(request.info, entry)


async def list_objects(context: Context, request: Request, options: ListOptions) -> Page:
    """One page of a list, in order of namespace and name."""
    match = compile_selector(options.selector, request.info)
    store = context.store
    version, after = store.revision, None
    if options.continue_token:
        version, after = _read_token(options.continue_token)
    is_costly = bool(options.selector.fields) or not request.info.is_stored_version
    entries = _entries_at(store, request, version=version, after=after)
    limit = options.limit or -1
    found: list[bytes] = []
    last: Key = ("", "")
    for count, entry in enumerate(entries, 1):
        if match is None or match(entry):
            if len(found) == limit:
                return Page(found, str(version), _token(version, last))
            found.append(body_of(request.info, entry))
            last = entry.key
        if is_costly and count % _TURN == 0:
            await asyncio.sleep(0)
    return Page(found, str(version))


def _token(version: int, last: Key) -> str:
    raw = msgspec.json.encode(_Continue(version, *last))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(text: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Continue)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest("continue key is not valid: take the one of the last page unchanged") from error
    return token.version, (token.namespace, token.name)


def _entries_at(store: Store, request: Request, *, version: int, after: Key | None) -> list[Entry]:
    """Entries behind a key as they were at a revision (a copy: writers go on)."""
    objects = store.objects(request.info.store_key)
    if version == store.revision:
        return list(objects.entries(request.namespace, after=after))
    before = _states_before(store, request.info.store_key, version=version)
    keys = set(objects.keys(request.namespace, after=after))
    keys |= {
        key
        for key in before
        if (not request.namespace or key[0] == request.namespace) and (after is None or key > after)
    }
    found = (before[key] if key in before else objects.get(key) for key in sorted(keys))
    return [entry for entry in found if entry is not None]


def _states_before(store: Store, resource: str, *, version: int) -> dict[Key, Entry | None]:
    history = store.history(resource)
    if version > store.revision or version < history.complete_after:
        raise Expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter."
        )
    before: dict[Key, Entry | None] = {}
    for change in history.since(history.position(version), limit=1 << 30) or ():
        before.setdefault(change.entry.key, change.previous)
    return before


async def watch(
    context: Context, request: Request, *, resource_version: str, selector: Selector
) -> AsyncIterator[WatchEvent]:
    """Changes behind a version; with an empty one or `0`, the current objects come first."""
    match = compile_selector(selector, request.info)
    store, info = context.store, request.info
    after = _version(resource_version)
    if after == 0:
        after = store.revision
        initial = list(store.objects(info.store_key).entries(request.namespace))
    else:
        initial = []
        if after > store.revision or after < store.oldest(info.store_key):
            raise status.expired_version(after, store.oldest(info.store_key))
    feed = Feed(store, info.store_key, after=after)
    for entry in initial:
        if match is None or match(entry):
            yield WatchEvent(EventType.ADDED, body_of(info, entry), str(entry.version))
    while (changes := await feed.next(BOOKMARK_SECONDS)) is not None:
        if not changes:
            yield WatchEvent(EventType.BOOKMARK, b"", str(store.revision))
        for event in _events(changes, request, match):
            yield event


def _version(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise BadRequest(f"invalid resource version {text!r}: it must be one that the server gave")
    return int(text)


def _events(changes: list[Change], request: Request, match: Match | None) -> Iterator[WatchEvent]:
    info, namespace = request.info, request.namespace
    for change in changes:
        if namespace and change.entry.key[0] != namespace:
            continue
        kind = _kind(change, match)
        if kind is not None:
            yield WatchEvent(kind, _shown(info, change, kind), str(change.entry.version))


def _kind(change: Change, match: Match | None) -> EventType | None:
    """How a change looks through a selector: what leaves it is deleted, what enters it is added."""
    was = change.previous is not None and (match is None or match(change.previous))
    is_now = not change.deleted and (match is None or match(change.entry))
    if is_now:
        return EventType.MODIFIED if was else EventType.ADDED
    return EventType.DELETED if was else None


def _shown(info: ResourceInfo, change: Change, kind: EventType) -> bytes:
    if kind is EventType.DELETED and not change.deleted and change.previous is not None:
        # It left the selector: shown as it was, under the version of the change.
        value = change.previous.decode()
        value["metadata"]["resourceVersion"] = str(change.entry.version)
        left = msgspec.structs.replace(change.previous, body=msgspec.json.encode(value))
        return body_of(info, left)
    return body_of(info, change.entry)
