"""The interface to a Kubernetes API. The typed client, informers and the runtime build on nothing else.

A request is a value, a `Call`. A transport implements `Api.call` and `Api.watch`: the embedded API server by direct
call (`apiserver.direct`), `kube.transport.http` for any server. A layer before another `Api`, such as one that limits
the rate, implements the same two methods and passes calls on. Callers use the methods by verb, which `Api` builds on
these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

import msgspec

from ironbell.api.kind import Collection
from ironbell.base.errors import IronbellError, Retry


class PatchType(Enum):
    """Content types of PATCH."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class EventType(Enum):
    """Types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Propagation(Enum):
    """Deletion of an object's dependents."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. `body` is the encoded object (for a bookmark: empty); the version is the object's."""

    type: EventType
    body: bytes
    resource_version: str


class Match(Enum):
    """Relation of a list's version to the requested one."""

    EXACT = "Exact"
    NOT_OLDER_THAN = "NotOlderThan"


@dataclass(frozen=True, slots=True)
class Page:
    """A list's answer: encoded items and the version that the whole list stands for."""

    items: list[bytes]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    """How many items follow, where that is known."""


class ApiError(IronbellError):
    """Rejection by the API server: its `Status` object."""

    code: int = 500
    reason = "InternalError"

    def __init__(
        self, message: str, *, code: int | None = None, reason: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, reason=reason)
        if code is not None:
            self.code = code
        self.details = details or {}


class BadRequest(ApiError):  # noqa: N818 - the names are those of the API's reasons
    code, reason, retry = 400, "BadRequest", Retry.NEVER


class Unauthorized(ApiError):  # noqa: N818
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):  # noqa: N818
    code, reason = 403, "Forbidden"


class NotFound(ApiError):  # noqa: N818
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):  # noqa: N818
    code, reason, retry = 405, "MethodNotAllowed", Retry.NEVER


class AlreadyExists(ApiError):  # noqa: N818
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):  # noqa: N818
    code, reason = 409, "Conflict"


class Expired(ApiError):  # noqa: N818
    """The requested resourceVersion is no longer available: list again."""

    code, reason = 410, "Expired"
    continue_token = ""
    """With this a list goes on behind its last page, with the items as they are now."""


class UnsupportedMediaType(ApiError):  # noqa: N818
    code, reason, retry = 415, "UnsupportedMediaType", Retry.NEVER


class Invalid(ApiError):  # noqa: N818
    code, reason, retry = 422, "Invalid", Retry.NEVER


class TooManyRequests(ApiError):  # noqa: N818
    code, reason = 429, "TooManyRequests"


class TimedOut(ApiError):  # noqa: N818
    """The server did not complete the request in time; `details` has when to try again."""

    code, reason = 504, "Timeout"


class Unavailable(ApiError):  # noqa: N818
    """The server cannot be reached or cannot answer now."""

    code, reason = 503, "ServiceUnavailable"


class Unreachable(Unavailable):
    """No answer came from the server's address."""


_BY_REASON: dict[str, type[ApiError]] = {
    error.reason: error
    for error in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, AlreadyExists, Conflict, Expired,
        UnsupportedMediaType, Invalid, TooManyRequests, TimedOut, Unavailable,
    )
}  # fmt: skip
_BY_CODE = {error.code: error for error in _BY_REASON.values() if error is not AlreadyExists}


def api_error(*, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> ApiError:
    """The error type that a `Status` answer means."""
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or ApiError
    return kind(message, code=code, reason=reason or kind.reason, details=details)


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Preconditions of a delete."""

    uid: str = ""
    resource_version: str = ""


NO_PRECONDITIONS = Preconditions()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options common to writes."""

    field_manager: str = ""
    dry_run: bool = False
    force: bool = False
    """Take over fields of other managers; for PatchType.APPLY only."""
    field_validation: str = ""
    """Handling of unknown and duplicate fields: `Strict` rejects them, `Warn` and `Ignore` drop them."""
    set_twice: tuple[str, ...] = ()
    """Duplicate keys of the text that the body was decoded from, as YAML's readers report them; the body has none."""


NO_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class Selector:
    """Label and field selectors of a list or watch, in their text form; empty selects everything."""

    labels: str = ""
    fields: str = ""


EVERYTHING = Selector()


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list."""

    selector: Selector = field(default=EVERYTHING)
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: Match | None = None


LIST_ALL = ListOptions()


class Verb(StrEnum):
    """Verb of a call, as access rules name it."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"
    DELETE_COLLECTION = "deletecollection"

    @property
    def is_write(self) -> bool:
        return self not in _READS


_READS = frozenset({Verb.GET, Verb.LIST, Verb.WATCH})


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request to an API.

    A create of a subresource has the name of its object; any other create takes the name from its body.
    """

    verb: Verb
    collection: Collection
    namespace: str = ""
    """Empty for all namespaces and for objects that have none."""
    name: str = ""
    subresource: str = ""
    body: bytes = b""
    """The encoded object or patch."""
    options: WriteOptions = NO_OPTIONS
    """Options of writes."""
    selection: ListOptions = LIST_ALL
    """Objects that are listed, watched (after `resource_version`), or deleted as a collection."""
    patch_type: PatchType = PatchType.MERGE
    preconditions: Preconditions = NO_PRECONDITIONS
    """Preconditions of a delete."""
    propagation: Propagation = Propagation.BACKGROUND
    """Propagation of a delete."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer to a call: what was listed or deleted as a collection, otherwise an encoded object or `Status`."""

    body: bytes = b""
    created: bool = False
    """Whether the call created an object, where the transport knows it."""
    listed: Page | None = None

    @property
    def page(self) -> Page:
        """Items of a list.

        Raises:
            TypeError: the call was neither a list nor a delete of a collection.
        """
        if self.listed is None:
            raise TypeError("an answer without a page")
        return self.listed


class Api(ABC):
    """A Kubernetes API, as one identity sees it. All bodies are encoded JSON objects.

    Every call may raise an `ApiError`; a network failure is `Unavailable`. Calls are cancellation points; a cancelled
    write may or may not have been carried out.
    """

    @abstractmethod
    async def call(self, call: Call) -> Answer:
        """Carry out any call but a watch."""

    @abstractmethod
    def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        """Changes after `call.selection.resource_version`, in order, with bookmarks. Ends when the server ends it.

        Raises:
            Expired: the version is too old; list again.
        """

    async def get(self, where: Collection, namespace: str, name: str, *, subresource: str = "") -> bytes:
        return (await self.call(Call(Verb.GET, where, namespace, name, subresource))).body

    async def list(self, where: Collection, namespace: str = "", options: ListOptions = LIST_ALL) -> Page:
        """One page; an empty namespace means all of them."""
        return (await self.call(Call(Verb.LIST, where, namespace, selection=options))).page

    def changes(
        self, where: Collection, namespace: str = "", *, resource_version: str, selector: Selector = EVERYTHING
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch the selected objects from a version on."""
        selection = ListOptions(selector, resource_version=resource_version)
        return self.watch(Call(Verb.WATCH, where, namespace, selection=selection))

    async def create(self, where: Collection, namespace: str, body: bytes, options: WriteOptions = NO_OPTIONS) -> bytes:
        return (await self.call(Call(Verb.CREATE, where, namespace, body=body, options=options))).body

    async def replace(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        return (await self.call(Call(Verb.UPDATE, where, namespace, name, subresource, body, options))).body

    async def patch(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        patch_type: PatchType,
        subresource: str = "",
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        call = Call(Verb.PATCH, where, namespace, name, subresource, body, options, patch_type=patch_type)
        return (await self.call(call)).body

    async def delete(
        self,
        where: Collection,
        namespace: str,
        name: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> bytes:
        """The object with its deletion mark, or the final `Status`."""
        call = Call(Verb.DELETE, where, namespace, name, preconditions=preconditions, propagation=propagation)
        return (await self.call(call)).body

    async def act(
        self,
        where: Collection,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str,
        options: WriteOptions = NO_OPTIONS,
    ) -> bytes:
        """Create a subresource that is not stored, such as a token or an eviction.

        Raises:
            NotFound: there is no such object, or the resource has no such subresource.
        """
        return (await self.call(Call(Verb.CREATE, where, namespace, name, subresource, body, options))).body
