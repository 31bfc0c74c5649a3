"""Lists: answered from memory, at the newest version or at an older one within the history in memory.

A continued list shows the state of its first page: later changes are undone. If that is no longer possible, the error
has a token that continues the list with the current items.

Source: kubernetes/apiserver: pkg/storage/etcd3/store.go (GetList), pkg/storage/continue.go, pkg/storage/errors.go,
pkg/storage/cacher/delegator (which version a list may show).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Collection, Iterator
from heapq import merge

import msgspec

from ironbell.api.client import BadRequest, Expired, ListOptions, Match, Page
from ironbell.apiserver import status
from ironbell.apiserver.context import Context, Request
from ironbell.apiserver.selectors.selectors import compile_selector
from ironbell.apiserver.store.entry import Entry, Key
from ironbell.apiserver.store.state import Objects
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.verbs.bodies import bodies_of

_TURN = 256
"""Other tasks run after so many steps of a long list."""
_LATEST = -1
"""In a token: the current items when it is used."""
_TOO_OLD = "The resourceVersion for the provided list is too old."
_PAGES_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class _Continue(msgspec.Struct, frozen=True, array_like=True):
    version: int
    namespace: str
    name: str


async def list_objects(context: Context, request: Request, options: ListOptions) -> Page:
    """One page of a list, in order of namespace and name.

    Raises:
        BadRequest: a selector or the token cannot be read.
        Expired: the requested version is too old.
        TimedOut: the requested version does not exist yet.
    """
    page, _ = await list_entries(context, request, options)
    return page


async def list_entries(context: Context, request: Request, options: ListOptions) -> tuple[Page, list[Entry]]:
    """One page of a list, with the entries that it shows."""
    match = compile_selector(options.selector, request.info)
    store = context.store
    version, after = _start(store, options)
    is_costly = bool(options.selector.fields) or not request.info.is_stored_version
    entries: Collection[Entry] = _entries_at(store, request, version=version, after=after)
    if is_costly:
        entries = list(entries)  # other tasks run in between
    # From version 0 on, Kubernetes answers from its cache, which has no pages.
    limit = 0 if options.resource_version == "0" and not options.continue_token else options.limit
    shown: list[Entry] = []
    token, remaining = "", None
    for count, entry in enumerate(entries, 1):
        if match is None or match(entry):
            if limit and len(shown) == limit:
                token = _token(version, shown[-1].key)
                remaining = len(entries) - count + 1 if match is None else None
                break
            shown.append(entry)
        if is_costly and count % _TURN == 0:
            await asyncio.sleep(0)
    bodies = await bodies_of(request.info, shown)
    return Page(bodies, str(version), token, remaining), shown


def _start(store: Store, options: ListOptions) -> tuple[int, Key | None]:
    """The version to show, and the key behind which to begin."""
    requested = int(options.resource_version or 0)
    if options.continue_token:
        version, after = _read_token(options.continue_token)
        if requested:
            raise BadRequest("specifying resource version is not allowed when using continue")
        return (store.revision if version == _LATEST else version), after
    if requested > store.revision:
        raise status.future_version(requested, store.revision)
    # A page of a version without resourceVersionMatch is for exactly that version.
    is_exact = options.match is Match.EXACT or (options.match is None and options.limit > 0)
    return (requested if requested and is_exact else store.revision), None


def _token(version: int, last: Key) -> str:
    raw = msgspec.json.encode(_Continue(version, *last))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(text: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Continue)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from error
    return token.version, (token.namespace, token.name)


class _Entries(Collection[Entry]):
    """Entries in order, looked up on iteration: the cost of a page does not depend on the length of the list."""

    def __init__(
        self, objects: Objects, keys: list[Key], previous: dict[Key, Entry | None], deleted: list[Key]
    ) -> None:
        """`previous` are the old states of changed objects, `deleted` the keys of those that no longer exist."""
        self._objects, self._keys, self._previous, self._deleted = objects, keys, previous, deleted

    def __len__(self) -> int:
        created_since = sum(1 for entry in self._previous.values() if entry is None)
        return len(self._keys) + len(self._deleted) - created_since

    def __contains__(self, entry: object) -> bool:
        return any(entry is other for other in self)

    def __iter__(self) -> Iterator[Entry]:
        get, previous = self._objects.get, self._previous
        for key in merge(self._keys, self._deleted) if self._deleted else self._keys:
            entry = previous[key] if key in previous else get(key)
            if entry is not None:
                yield entry


def _entries_at(store: Store, request: Request, *, version: int, after: Key | None) -> _Entries:
    """Entries behind a key in their state at a revision; must be read before the next await."""
    objects = store.objects(request.info.store_key)
    keys = objects.keys(request.namespace, after=after)
    if version == store.revision:
        return _Entries(objects, keys, {}, [])
    previous = {
        key: entry
        for key, entry in _states_before(store, request.info.store_key, version=version, after=after).items()
        if (not request.namespace or key[0] == request.namespace) and (after is None or key > after)
        # an object that was created and deleted since did not exist at that revision
        if entry is not None or objects.get(key) is not None
    }
    deleted = sorted(key for key in previous if objects.get(key) is None)
    return _Entries(objects, keys, previous, deleted)


def _states_before(store: Store, resource: str, *, version: int, after: Key | None) -> dict[Key, Entry | None]:
    history = store.history(resource)
    if version > store.revision or version < max(history.complete_after, store.horizon):
        if after is None:
            raise Expired(_TOO_OLD)
        error = Expired(_PAGES_TOO_OLD)
        error.continue_token = _token(_LATEST, after)
        raise error
    previous: dict[Key, Entry | None] = {}
    for change in history.since(history.position(version), limit=1 << 30) or ():
        previous.setdefault(change.entry.key, change.previous)
    return previous
