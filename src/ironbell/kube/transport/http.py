"""The HTTP transport: `Api` over any Kubernetes API server.

One aiohttp session per server. Every request has a timeout; a watch has one for silence only (servers send bookmarks
about every minute). Failures of the network are `Unavailable`, rejections by the server are the error of its `Status`
names. Reconnecting is the informer's job. A write is sent once: one whose answer is lost may have been carried out, and
sent again it would be rejected because of its own first effect.

Source: kubernetes.io: reference/using-api/api-concepts for queries and watches.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from ironbell.api.client import (
    Answer,
    Api,
    Call,
    Page,
    PatchType,
    Unavailable,
    Unreachable,
    Verb,
    WatchEvent,
    api_error,
)
from ironbell.api.kind import Collection
from ironbell.base.errors import os_problem
from ironbell.base.randomness import Randomness, SystemRandomness
from ironbell.kube.manager import metrics
from ironbell.kube.transport.connection import Connection
from ironbell.kube.transport.frames import FrameSplitter, read_frame, read_status

REQUEST_S = 60.0
CONNECT_S = 10.0
SILENCE_S = 180.0
WATCH_S = 300
"""After how long at least we ask the server to end a watch, so that connections are renewed; at most twice that, at
random, so that clients that began together do not return together."""
_JSON = "application/json"
_METHODS = {
    Verb.GET: "GET", Verb.LIST: "GET", Verb.CREATE: "POST", Verb.UPDATE: "PUT", Verb.PATCH: "PATCH",
    Verb.DELETE: "DELETE", Verb.DELETE_COLLECTION: "DELETE",
}  # fmt: skip
_DELETES = {Verb.DELETE, Verb.DELETE_COLLECTION}
_LISTS = {Verb.LIST, Verb.DELETE_COLLECTION}


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_lists = msgspec.json.Decoder(_List)


class HttpApi(Api):
    """A server's API, as the identity of a `Connection` sees it. Close it after use."""

    def __init__(self, connection: Connection, *, randomness: Randomness | None = None) -> None:
        self._randomness = randomness or SystemRandomness()
        self._connection = connection
        self._session: aiohttp.ClientSession | None = None
        self._base = URL(connection.server)
        self._proxied = _proxy_options(connection.proxy)

    async def __aenter__(self) -> HttpApi:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, call: Call) -> Answer:
        path = call.collection.path(call.namespace, call.name, call.subresource)
        content_type = call.patch_type.value if call.verb is Verb.PATCH else _JSON
        body = call.body if call.verb not in _DELETES else _delete_options(call)
        async with self._request(
            _METHODS[call.verb], path, query=_query(call), body=body, content_type=content_type, timeout=_timeout()
        ) as response:
            content, created = await response.read(), response.status == 201
        if call.verb in _LISTS:
            return Answer(listed=_page(call.collection, content))
        return Answer(content, created)

    async def watch(self, call: Call) -> AsyncGenerator[WatchEvent, None]:
        query = _query(call) | {
            "watch": "true",
            "resourceVersion": call.selection.resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(WATCH_S * (1 + self._randomness.fraction()))),
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        path = call.collection.path(call.namespace)
        async with self._request("GET", path, query=query, timeout=timeout) as response:
            splitter = FrameSplitter()
            async for chunk in response.content.iter_any():
                for line in splitter.feed(chunk):
                    yield read_frame(line)

    async def raw(
        self, method: str, path: str, *, query: dict[str, str] | None = None, body: bytes = b"", accept: str = _JSON
    ) -> bytes:
        """Any other request, such as discovery or a server-side table; the path begins with a slash."""
        async with self._request(method, path, query=query, body=body, accept=accept, timeout=_timeout()) as response:
            return await response.read()

    async def stream(
        self, path: str, *, query: dict[str, str] | None = None, accept: str = _JSON, silence_s: float | None = None
    ) -> AsyncIterator[bytes]:
        """The answer to a GET in the pieces in which it comes, for as long as it lasts; `silence_s` ends one from which
        nothing comes."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=silence_s)
        async with self._request("GET", path, query=query, accept=accept, timeout=timeout) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    async def websocket(self, path: str, *, query: dict[str, str], protocol: str) -> aiohttp.ClientWebSocketResponse:
        """An open WebSocket; the caller closes it. Cancellation point.

        Raises:
            ApiError: the server rejects the request, or cannot be reached.
        """
        connection = self._connection
        try:
            socket: aiohttp.ClientWebSocketResponse = await self._open().ws_connect(
                self._base.with_path(self._base.path.rstrip("/") + path),
                protocols=(protocol,),
                params=query,
                headers=await connection.headers(),
                ssl=await connection.tls_context() or True,
                server_hostname=connection.tls_server_name or None,
                max_msg_size=0,
                **self._proxied,
            )
            return socket
        except aiohttp.WSServerHandshakeError as error:
            raise api_error(code=error.status, reason="", message=f"{path}: {error.message}") from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"the API server at {self._base.host} cannot be reached: {_problem(error)}") from error

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        accepted = [("Accept", accept), *([("Content-Type", content_type)] if body else [])]
        url = self._base.with_path(self._base.path.rstrip("/") + path)
        try:
            response = await self._sent(
                method, url, accepted, params=query, data=body or None, timeout=timeout, **self._proxied
            )
            try:
                if response.status >= 400:
                    raise read_status(await response.read(), response.status)
                yield response
            finally:
                _cut_off(response)
                response.release()
                await response.wait_for_close()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"the API server at {self._base.host} cannot be reached: {_problem(error)}") from error

    async def _sent(
        self, method: str, url: URL, headers: Sequence[tuple[str, str]], **more: Any
    ) -> aiohttp.ClientResponse:
        """Return the beginning of the answer. A request that was rejected for its credential had no effect: if another
        one is available, it is sent once more with that."""
        connection = self._connection
        may_repeat = True
        while True:
            identity = await connection.headers()
            tls = await connection.tls_context()
            code = "<error>"
            try:
                response = await self._open().request(
                    method,
                    url,
                    headers=[*headers, *identity],
                    ssl=tls or True,
                    server_hostname=connection.tls_server_name or None,
                    middlewares=() if method == "GET" else (_SentOnce(),),
                    **more,
                )
                code = str(response.status)
            finally:
                metrics.client_requests.labels(code, method, self._base.host or "").inc()
            if response.status != 401 or not connection.on_rejection(identity) or not may_repeat:
                return response
            may_repeat = False
            response.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connection.connector(), read_bufsize=1 << 20, auto_decompress=True, trust_env=False
            )
        return self._session


class _SentOnce:
    """Keeps aiohttp from sending a PUT or DELETE again when its connection breaks."""

    def __init__(self) -> None:
        self._failure: aiohttp.ClientError | None = None

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._failure is not None:
            raise self._failure
        try:
            return await handler(request)
        except aiohttp.ClientError as error:
            self._failure = error
            raise


def _problem(error: Exception) -> str:
    """Return the problem on the network, without the library's own words around it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}:{error.port}: {os_problem(error.os_error)}"
    return str(error) or type(error).__name__


def _proxy_options(proxy: str) -> dict[str, Any]:
    """A proxy without its password in the URL, which messages may repeat."""
    if not proxy:
        return {}
    url = URL(proxy)
    if url.user is None:
        return {"proxy": url}
    return {"proxy": url.with_user(None), "proxy_auth": aiohttp.BasicAuth(url.user, url.password or "")}


def _cut_off(response: aiohttp.ClientResponse) -> None:
    """End the connection of an answer that is left in its middle, as watches are: TLS's farewell would keep it, and
    the event loop that owns it, for half a minute."""
    transport = response.connection.transport if response.connection is not None else None
    if transport is not None and not response.content.at_eof():
        transport.abort()


def _timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S)


def _query(call: Call) -> dict[str, str]:
    """The parameters that are set; of a delete, only its selection, since its options are in the body."""
    selection, options = call.selection, call.options
    query = {
        "labelSelector": selection.selector.labels,
        "fieldSelector": selection.selector.fields,
        "limit": str(selection.limit or ""),
        "continue": selection.continue_token,
        "resourceVersion": "" if selection.continue_token else selection.resource_version,
    }
    if call.verb not in _DELETES:
        query |= {
            "fieldManager": options.field_manager,
            "dryRun": "All" if options.dry_run else "",
            "fieldValidation": options.field_validation,
            "force": "true" if options.force and call.patch_type is PatchType.APPLY else "",
        }
    return {name: value for name, value in query.items() if value}


def _delete_options(call: Call) -> bytes:
    options: dict[str, Any] = {
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": call.propagation.value
    }  # fmt: skip
    guard = {"uid": call.preconditions.uid, "resourceVersion": call.preconditions.resource_version}
    if guard := {field: value for field, value in guard.items() if value}:
        options["preconditions"] = guard
    if call.options.dry_run:
        options["dryRun"] = ["All"]
    return msgspec.json.encode(options)


def _page(collection: Collection, body: bytes) -> Page:
    try:
        answer = _lists.decode(body)
    except msgspec.DecodeError as error:
        raise Unavailable(f"the server answered no list of {collection.plural}: {error}") from error
    items = [bytes(item) for item in answer.items or ()]
    return Page(items, answer.metadata.resource_version, answer.metadata.continue_)
