"""What clients of an API were told, to be held against what it says after it was killed.

A name belongs to one writer, who has one request under way at a time. So what must be stored under it is what was
acknowledged last, or what the request was to do whose answer never came.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ironbell.api.client import EventType, WatchEvent

Place = tuple[str, str]
"""Plural and name."""


@dataclass(frozen=True)
class Known:
    """An object as it was acknowledged."""

    value: str
    version: int


@dataclass(frozen=True)
class Pending:
    """A request without an answer; `value` is None for a deletion."""

    value: str | None


@dataclass
class Ledger:
    """Everything that was acknowledged, and what may have happened besides."""

    known: dict[Place, Known] = field(default_factory=dict)
    pending: dict[Place, Pending] = field(default_factory=dict)
    newest: int = 0
    versions: list[tuple[str, int]] = field(default_factory=list)
    """Plural and version of writes that were acknowledged since watchers were last compared."""
    acknowledged: int = 0
    unanswered: int = 0

    def begin(self, place: Place, value: str | None) -> int:
        """A request goes out; gives the newest version that had been acknowledged by then."""
        self.pending[place] = Pending(value)
        return self.newest

    def end(self, place: Place, version: int | None, after: int) -> None:
        """Its answer came; deletions are answered without a version."""
        value = self.pending.pop(place).value
        self.acknowledged += 1
        if version is not None:
            assert version > after, f"{place}: version {version} was given out after {after} was acknowledged"
            self.newest = max(self.newest, version)
            self.versions.append((place[0], version))
        if value is None:
            del self.known[place]
        else:
            assert version is not None
            self.known[place] = Known(value, version)

    def settle(self, plural: str, found: dict[str, Known]) -> None:
        """Hold what the API lists now against what it acknowledged; nothing is under way."""
        names = {name for kind, name in (*self.known, *self.pending) if kind == plural}
        assert found.keys() <= names, f"nobody made {found.keys() - names}"
        for name in names:
            place, there = (plural, name), found.get(name)
            pending = self.pending.pop(place, None)
            self.unanswered += pending is not None
            if there == self.known.get(place):
                continue
            assert pending is not None, f"{place}: acknowledged {self.known.get(place)}, stored {there}"
            assert (there.value if there else None) == pending.value, f"{place}: {there} after {pending}"
            if there is None:
                self.known.pop(place, None)
            else:
                assert there.version > (self.known[place].version if place in self.known else 0)
                self.known[place] = there


def body(value: str) -> dict[str, str]:
    """Contents that show whether they are whole."""
    filling = value * 100
    parts = {"v": value, "filling": filling, "sum": str(zlib.crc32(filling.encode()))}
    return {key: base64.b64encode(text.encode()).decode() for key, text in parts.items()}


def read(stored: bytes) -> tuple[str, Known]:
    """Name, value and version of an object, which must be whole."""
    value: dict[str, Any] = msgspec.json.decode(stored)
    data = {key: base64.b64decode(text).decode() for key, text in value["data"].items()}
    assert zlib.crc32(data["filling"].encode()) == int(data["sum"]), "a partial object"
    assert data["filling"] == data["v"] * 100, "a partial object"
    return value["metadata"]["name"], Known(data["v"], int(value["metadata"]["resourceVersion"]))


def is_ours(name: str) -> bool:
    """Whether writers made it; the server has objects of its own in every namespace."""
    return name.startswith("w")


@dataclass
class Follower:
    """What a watch led to that is resumed after each kill."""

    version: int
    model: dict[str, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    resumed: int = 0

    def take(self, event: WatchEvent) -> None:
        """The next event: never one twice, never one that does not fit what came before."""
        version = int(event.resource_version)
        if event.type is EventType.BOOKMARK:
            assert version >= self.version
            self.version = version
            return
        assert version > self.version, f"{event.type} of {version} after {self.version}"
        self.version = version
        name = str(msgspec.json.decode(event.body)["metadata"]["name"])
        if not is_ours(name):
            return
        self.seen.add(version)
        assert (event.type is EventType.ADDED) == (name not in self.model), f"{event.type} of {name} at {version}"
        if event.type is EventType.DELETED:
            del self.model[name]
        else:
            read(event.body)
            self.model[name] = version

    def missed(self, versions: Iterable[int]) -> set[int]:
        """Acknowledged versions that were never seen; what was seen is forgotten."""
        missed = set(versions) - self.seen
        self.seen.clear()
        return missed
