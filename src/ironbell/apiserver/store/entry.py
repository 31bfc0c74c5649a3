"""One stored object: its encoded bytes and the header that selectors, indexes and preconditions need."""

from __future__ import annotations

from typing import Any

import msgspec

from ironbell.api.client import ApiError

MAX_OBJECT_BYTES = 3 << 19
"""1.5 MiB: what etcd takes in one request (etcd-io/etcd: server/embed/config.go)."""


class TooLarge(ApiError):  # noqa: N818 - as the API's reason
    """An object is larger than the limit."""

    code, reason = 413, "RequestEntityTooLarge"


Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped resources."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An object as stored. Immutable: a write creates a new entry."""

    resource: str
    """`plural.group`."""
    key: Key
    version: int
    """The revision that wrote it, which is its resourceVersion."""
    uid: str
    body: bytes
    labels: dict[str, str] | None = None
    owners: tuple[str, ...] = ()
    """uids of its owners."""
    deleting: bool = False

    @property
    def namespace(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return self.key[1]

    def decode(self) -> dict[str, Any]:
        """The object as plain data, decoded again by every call."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded


class _Owner(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _Meta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[_Owner, ...] | None = None
    deletion_timestamp: str | None = None


class _Header(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta


_HEADERS = msgspec.json.Decoder(_Header)


def read_entry(resource: str, key: Key, version: int, *, body: bytes) -> Entry:
    """An entry from its encoded form in the log."""
    meta = _HEADERS.decode(body).metadata
    return Entry(
        resource,
        key,
        version,
        meta.uid,
        body,
        meta.labels or None,
        tuple(owner.uid for owner in meta.owner_references or ()),
        meta.deletion_timestamp is not None,
    )


def new_entry(resource: str, key: Key, version: int, *, value: dict[str, Any]) -> Entry:
    """An entry for an object that has just been decided on; its resourceVersion is set to `version`."""
    meta = value["metadata"]
    meta["resourceVersion"] = str(version)
    owners = meta.get("ownerReferences")
    return Entry(
        resource,
        key,
        version,
        meta["uid"],
        msgspec.json.encode(value),
        dict(meta["labels"]) if meta.get("labels") else None,
        tuple(owner["uid"] for owner in owners) if owners else (),
        "deletionTimestamp" in meta,
    )


def require_size(entry: Entry) -> None:
    """Reject an object that etcd would not store. JSON's escapes are not counted, because etcd's encoding has none. An
    object that is being deleted may always be written, or it could never be removed.

    Raises:
        TooLarge: the object is larger.
    """
    if len(entry.body) <= MAX_OBJECT_BYTES or entry.deleting:
        return
    size = len(entry.body) - entry.body.count(b"\\") - 4 * entry.body.count(b"\\u")
    if size > MAX_OBJECT_BYTES:
        raise TooLarge(
            f"Request entity too large: the object would have {size} bytes, the limit is {MAX_OBJECT_BYTES}; keep "
            "large contents elsewhere"
        )


class Change(msgspec.Struct, frozen=True, gc=False):
    """One committed write, which watches and indexes receive."""

    entry: Entry
    """The new object; for a deletion its last state, under the version of the deletion."""
    previous: Entry | None
    """The replaced entry; None for a new object."""
    deleted: bool = False
