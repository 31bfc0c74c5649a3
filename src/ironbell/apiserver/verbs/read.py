"""Get and watch: answered from memory.

Source: kubernetes/apiserver: pkg/storage/cacher (bookmarks).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec

from ironbell.api.client import BadRequest, EventType, Selector, WatchEvent
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.fielderrors import invalid
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.selectors.selectors import Match, compile_selector
from ironbell.apiserver.store.entry import Change, Entry
from ironbell.apiserver.store.watch import Feed
from ironbell.apiserver.verbs.bodies import bodies_of, body_of, plain_body
from ironbell.base.quantities import decimal

BOOKMARK_SECONDS = 60.0
_BATCH = 256
_DIGITS = 20
"""Digits of the largest number in 64 bits."""


async def get(context: Context, request: Request) -> bytes:
    """One object."""
    entry = context.store.get(request.info.store_key, request.key)
    if entry is None:
        raise status.not_found(request.info, request.name)
    return await body_of(request.info, entry)


async def watch(
    context: Context, request: Request, *, resource_version: str, selector: Selector
) -> AsyncIterator[WatchEvent]:
    """Changes behind a version; with an empty one or `0`, the current objects come first.

    Raises:
        BadRequest: a selector or the version cannot be read.
        Expired: the changes since that version were dropped, or the version never existed.
    """
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
    chosen = [entry for entry in initial if match is None or match(entry)]
    for start in range(0, len(chosen), _BATCH):
        batch = chosen[start : start + _BATCH]
        for entry, body in zip(batch, await bodies_of(info, batch), strict=True):
            yield WatchEvent(EventType.ADDED, body, str(entry.version))
    while (changes := await feed.next(BOOKMARK_SECONDS)) is not None:
        if not changes:
            yield WatchEvent(EventType.BOOKMARK, b"", str(store.revision))
        if info.is_converted:
            for event in await _converted_events(request, changes, match):
                yield event
        else:
            for event in _events(context, request, changes, match):
                yield event


def _version(text: str) -> int:
    if not text:
        return 0
    number = decimal(text, digits=_DIGITS)
    if number is None:
        detail = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
        raise BadRequest(str(invalid("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": {detail}')))
    return number


def _events(context: Context, request: Request, changes: list[Change], match: Match | None) -> Iterator[WatchEvent]:
    for change, kind in _visible(request, changes, match):
        yield _event(context, request.info, change, kind)


async def _converted_events(request: Request, changes: list[Change], match: Match | None) -> list[WatchEvent]:
    """The events where a webhook converts: all are converted at once."""
    visible = list(_visible(request, changes, match))
    bodies = await bodies_of(request.info, [_state(change, kind) for change, kind in visible])
    return [
        WatchEvent(kind, body, str(change.entry.version)) for (change, kind), body in zip(visible, bodies, strict=True)
    ]


def _visible(request: Request, changes: list[Change], match: Match | None) -> Iterator[tuple[Change, EventType]]:
    """The changes that a watch sees, with the type of each event."""
    namespace = request.namespace
    for change in changes:
        if namespace and change.entry.key[0] != namespace:
            continue
        kind = _kind(change, match)
        if kind is not None:
            yield change, kind


def _event(context: Context, info: ResourceInfo, change: Change, kind: EventType) -> WatchEvent:
    key = (change.entry.version, info.group, info.version, kind)
    event = context.shown.get(key)
    if event is None:
        event = WatchEvent(kind, plain_body(info, _state(change, kind)), str(change.entry.version))
        context.shown.put(key, event, size=len(event.body))
    return event


def _kind(change: Change, match: Match | None) -> EventType | None:
    """The event type of a change with a selector: an object that leaves it is deleted, one that enters it is added."""
    matched = change.previous is not None and (match is None or match(change.previous))
    is_now = not change.deleted and (match is None or match(change.entry))
    if is_now:
        return EventType.MODIFIED if matched else EventType.ADDED
    return EventType.DELETED if matched else None


def _state(change: Change, kind: EventType) -> Entry:
    if kind is EventType.DELETED and not change.deleted and change.previous is not None:
        # It left the selector: the old state is shown, under the version of the change.
        value = change.previous.decode()
        value["metadata"]["resourceVersion"] = str(change.entry.version)
        body = msgspec.json.encode(value)
        return msgspec.structs.replace(change.previous, version=change.entry.version, body=body)
    return change.entry
