"""The handler of all requests: authentication, routing, the verb, and a response in every case.

Every error is sent as a `Status` object. An unexpected exception is logged with its traceback, and sent as an internal
error without details.

Source: kubernetes/apiserver: pkg/server/config.go (order of the chain), pkg/endpoints/request/requestinfo.go (verbs).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from ironbell.api.client import ApiError, BadRequest, NotFound, TooManyRequests, Unauthorized
from ironbell.apiserver.access.auth import ANONYMOUS, authenticate, is_open
from ironbell.apiserver.access.identity import Identity
from ironbell.apiserver.access.roles import Attributes, forbidden_error
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.flowcontrol.classify import namespace_of
from ironbell.apiserver.http import measures, verbs, watches
from ironbell.apiserver.http.audit import AuditRecord, AuditSink
from ironbell.apiserver.http.content import bodies
from ironbell.apiserver.http.content.answers import answer, answer_value, error_response
from ironbell.apiserver.http.content.documents import (
    IDENTITY_PATHS,
    Documents,
    health,
    no_page,
    unknown_path,
    version_info,
)
from ironbell.apiserver.http.content.media import plain_media_type, require_json
from ironbell.apiserver.http.content.sending import common_headers, finish, leave_seat, set_common_headers, set_seat
from ironbell.apiserver.http.exchange import Exchange, Streams, method_not_allowed, resource_of
from ironbell.apiserver.http.fairness import Fairness
from ironbell.apiserver.http.parameters import flag, require_timeout
from ironbell.apiserver.http.reviews import answer_review
from ironbell.apiserver.http.reviews import find as find_review
from ironbell.apiserver.http.server.message import Request, Response
from ironbell.apiserver.http.target import Target, parse
from ironbell.apiserver.identities.bearer import BearerTokens
from ironbell.apiserver.identities.impersonation import impersonated, requested_identity
from ironbell.apiserver.warnings import begin_annotations, collecting
from ironbell.base.randomness import uuid4

MAX_IN_FLIGHT = 2000
SERVER_NAME = "ironbell"

_LONG_RUNNING = ("attach", "exec", "log", "portforward", "proxy")
"""Subresources with long-running responses, which are exempt from flow control."""

_log = structlog.get_logger()
_Verb = Callable[[Exchange], Awaitable[Response]]

_OBJECT_VERBS: dict[str, tuple[str, _Verb]] = {
    "GET": ("get", verbs.get),
    "PUT": ("update", verbs.replace),
    "PATCH": ("patch", verbs.patch),
    "DELETE": ("delete", verbs.delete),
}
_COLLECTION_VERBS: dict[str, tuple[str, _Verb]] = {
    "GET": ("list", verbs.list_),
    "POST": ("create", verbs.create),
    "DELETE": ("deletecollection", verbs.delete_collection),
}


@dataclass
class _Progress:
    """Facts about a request so far: for audit and metrics."""

    started: float
    audit_id: str
    identity: Identity = ANONYMOUS
    """The sender."""
    acting_as: Identity | None = None
    """The identity that the sender impersonates, if any."""
    target: Target | None = None
    verb: str = ""
    resource: tuple[str, str, str, str] = ("", "", "", "")
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def effective(self) -> Identity:
        """The identity whose rights apply."""
        return self.acting_as or self.identity


@dataclass
class Handler:
    """The server's one request handler."""

    server: ApiServer
    tokens: BearerTokens
    documents: Documents
    streams: Streams = field(default_factory=Streams)
    audit: AuditSink | None = None
    fairness: Fairness = field(default_factory=Fairness)
    _in_flight: int = 0

    def __post_init__(self) -> None:
        self.server.flow_control.listen(self.fairness.set_plan)

    async def __call__(self, request: Request) -> Response:
        """Answer one request."""
        progress = _Progress(self.server.clock.monotonic(), uuid4(self.server.randomness), verb=request.method.lower())
        progress.annotations = begin_annotations()
        self._in_flight += 1
        measures.IN_FLIGHT.set(self._in_flight)
        code = 0
        try:
            with collecting() as warnings:
                set_common_headers(request, {"Audit-Id": progress.audit_id, "Server": SERVER_NAME}, warnings=warnings)
                response = await self._guarded(request, progress)
            code = response.status
            if not response.is_sent:
                response.headers += common_headers(request)
            await finish(request, response)
            return response
        finally:
            leave_seat(request)
            self._in_flight -= 1
            self._record(request, progress, code)

    async def _guarded(self, request: Request, progress: _Progress) -> Response:
        try:
            if self._in_flight > MAX_IN_FLIGHT + len(self.streams):
                measures.REJECTED.inc()
                raise TooManyRequests("too many requests at once: try again")
            return await self._routed(request, progress)
        except ApiError as error:
            return await error_response(request, error)
        except RecursionError:
            # Parsers follow the nesting of a body; nothing has been stored at that point.
            return await error_response(request, BadRequest("the request's body nests too deeply"))
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a request: nothing of it may reach the client
            _log.exception("request failed", audit_id=progress.audit_id, path=request.path, error=type(error).__name__)
            fault = ApiError(f"internal error: look for {progress.audit_id} in the server's log")
            return await error_response(request, fault)

    async def _routed(self, request: Request, progress: _Progress) -> Response:
        path = request.path.rstrip("/") or "/"
        require_timeout(request.query)
        progress.identity = authenticate(request.headers, request.connection.peer_certificate(), self.tokens)
        everyone_may = is_open(path)
        if progress.identity is ANONYMOUS and not everyone_may:
            raise Unauthorized("Unauthorized")
        target = parse(path) if path.startswith(("/api/", "/apis/")) else None
        attributes = _requested_attributes(request, target, path)
        self._impersonate(request, attributes, progress)
        line = self.server.flow_control.plan.classify(progress.effective, attributes)
        if attributes.subresource not in _LONG_RUNNING:
            request.common = {**request.common, **line.headers}
        if everyone_may:
            return await self._open(request, path)
        reads = request.method in {"GET", "HEAD"}
        seat = await self.fairness.enter(line, progress.effective, namespace_of(attributes), reads=reads)
        set_seat(request, seat)
        if path.startswith(("/api/", "/apis/")):
            if target is None:
                raise unknown_path()
            if target.plural:
                return await self._resource(request, target, progress)
        return await self._document(request, path, progress)

    def _impersonate(self, request: Request, attributes: Attributes, progress: _Progress) -> None:
        target = requested_identity(tuple(request.headers.items()))
        if target is not None:
            progress.acting_as = impersonated(target, progress.identity, self.server.authorizer, attributes=attributes)

    async def _open(self, request: Request, path: str) -> Response:
        if request.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        if path == "/version":
            require_json(request.headers.get("Accept", ""))
            return await answer_value(request, version_info())
        return health(request, path, is_writable=self.server.is_writable)

    async def _document(self, request: Request, path: str, progress: _Progress) -> Response:
        self._authorize(progress.effective, Attributes(request.method.lower(), path=path))
        if request.method not in {"GET", "HEAD"}:
            raise method_not_allowed()
        if path in {"/api", "/apis"} or path.startswith(("/api/", "/apis/")):
            target = parse(path)
            if request.method == "HEAD" and (path == "/api" or self._is_builtin_version(target)):
                raise method_not_allowed()
            return await self.documents.discovery(request, path, target)
        if path in IDENTITY_PATHS:
            return await self.documents.identity(request, path)
        if path.startswith("/openapi/"):
            return await self.documents.openapi(request, path)
        if path == "/metrics":
            return await self.documents.metrics()
        if path == "/":
            return await answer_value(request, self.documents.index())
        return no_page()

    def _is_builtin_version(self, target: Target | None) -> bool:
        """Return whether a target is a group and version of built-in kinds, whose discovery does not support HEAD."""
        if target is None or not target.version:
            return False
        members = [
            info for info in self.server.resources if (info.group, info.version) == (target.group, target.version)
        ]
        return not members or any(not info.custom for info in members)

    async def _resource(self, request: Request, target: Target, progress: _Progress) -> Response:
        progress.target = target
        review = find_review(target)
        if review is not None:
            if request.method != "POST":
                raise method_not_allowed()
            media_type = plain_media_type(request.headers.get("Accept", ""))
            progress.verb = "create"
            self._authorize(progress.effective, _attributes(request, target))
            body = await bodies.read_object(request)
            answered = answer_review(
                review, self.server, self.tokens,
                identity=progress.effective, namespace=target.namespace, body=body,
            )  # fmt: skip
            return await answer(request, answered, status=201, media_type=media_type)
        try:
            info = resource_of(self.server, target)
        except NotFound:
            # a client without permission must not learn which resources exist
            self._authorize(progress.effective, _attributes(request, target))
            if not self.server.resources.has_group(target.group):
                return no_page()
            raise
        progress.resource = (info.group, info.version, info.plural, target.subresource)
        api = self.server.client(progress.effective)
        exchange = Exchange(request, self.server, api, progress.effective, target, info, self.streams)
        progress.verb, verb = _choose(exchange)
        return await verb(exchange)

    def _authorize(self, identity: Identity, attributes: Attributes) -> None:
        decision = self.server.authorizer.decide(identity, attributes)
        if not decision.allowed:
            raise forbidden_error(identity, attributes, reason=decision.reason)

    def _record(self, request: Request, progress: _Progress, code: int) -> None:
        """Update metrics and the audit log; a code of zero means that the client left before the response."""
        seconds = self.server.clock.monotonic() - progress.started
        measures.IN_FLIGHT.set(self._in_flight)
        measures.REQUESTS.labels(progress.verb, *progress.resource, str(code)).inc()
        if progress.verb not in {"watch", "connect"}:
            measures.DURATION.labels(progress.verb).observe(seconds)
        if self.audit is not None:
            record = AuditRecord(
                progress.audit_id, progress.identity, progress.acting_as, progress.verb, request.raw_path,
                progress.target, code, self.server.clock.now() - timedelta(seconds=seconds), seconds,
                request.remote, request.headers.get("User-Agent", ""), progress.annotations,
            )  # fmt: skip
            self.audit(record)


def _requested_attributes(request: Request, target: Target | None, path: str) -> Attributes:
    """The attributes of a request, for a resource or another path."""
    if target is None or not target.plural:
        return Attributes(request.method.lower(), path=path)
    return _attributes(request, target)


def _attributes(request: Request, target: Target) -> Attributes:
    """The attributes of a request for a resource, which may not exist."""
    method = "GET" if request.method == "HEAD" else request.method
    chosen = (_OBJECT_VERBS if target.name else _COLLECTION_VERBS).get(method)
    verb = chosen[0] if chosen else method.lower()
    if target.subresource and request.method == "POST":
        verb = "create"
    elif request.method == "GET" and not target.subresource and flag(request.query, "watch"):
        verb = "watch"
    return Attributes(verb, target.group, target.plural, target.namespace, target.name, target.subresource)


def _choose(exchange: Exchange) -> tuple[str, _Verb]:
    """The verb of an exchange, and the function that carries it out."""
    method, target = exchange.request.method, exchange.target
    subresource = target.subresource
    if method == "HEAD" and exchange.info.custom:
        method = "GET"  # the response is that of GET, sent without its body
    if subresource and exchange.server.connects.find(target.group, target.plural, subresource=subresource):
        return "connect", verbs.connect
    if subresource and method == "POST":
        return "create", verbs.act
    if method == "GET" and not target.name and flag(exchange.query, "watch"):
        return "watch", watches.watch
    chosen = (_OBJECT_VERBS if target.name else _COLLECTION_VERBS).get(method)
    if chosen is None or (subresource and method == "DELETE"):
        raise method_not_allowed()
    if exchange.info.namespaced and not target.namespace and method != "GET":
        # Only reads work across all namespaces.
        raise method_not_allowed()
    if subresource == "finalize" and method != "PUT":
        raise method_not_allowed()
    if not subresource and chosen[0] not in exchange.info.verbs:
        raise method_not_allowed()
    return chosen
