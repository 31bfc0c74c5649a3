"""Calls to webhooks: JSON over TLS, with a timeout, to a URL or to a Service.

The process has no cluster network. A Service is reached at one of its ready endpoints (EndpointSlices, else Endpoints),
or at its `externalName`, or, failing these, at its cluster address; its certificate must be for `NAME.NAMESPACE.svc`
wherever it is reached.

Source: kubernetes/apiserver: pkg/util/webhook/client.go, pkg/util/proxy/proxy.go (ResolveEndpoint).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import ssl
from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ironbell.apiserver.store.store import Store
from ironbell.apiserver.threads import in_thread
from ironbell.apiserver.webhooks.configuration import ClientConfig, ServiceReference
from ironbell.apiserver.webhooks.services import resolve
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.randomness import Randomness

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER_BYTES = 16 << 20
CONNECTIONS = 256
_CONTEXTS = 128


class CallError(IronbellError):
    """A webhook could not be called, or its response is not valid."""

    reason, retry = "WebhookFailed", Retry.BACKOFF


class _Place(msgspec.Struct, frozen=True):
    """The target of a call."""

    url: str
    """The URL in messages."""
    address: str
    """The address that the call connects to."""
    server_name: str
    """The name that the certificate must have."""


class WebhookClient:
    """Calls webhooks; connections are kept open between calls."""

    def __init__(self, store: Store, randomness: Randomness) -> None:
        self._store, self._randomness = store, randomness
        self._session: aiohttp.ClientSession | None = None
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, where: ClientConfig, body: Any, *, seconds: int) -> Any:
        """Post a value and return the response, decoded.

        Raises:
            CallError: the webhook cannot be reached or trusted, fails, or takes longer than `seconds`.
        """
        import aiohttp  # imported by the first call, so that a start is faster

        place = self._place(where)
        shown = f'Post "{place.url}?timeout={seconds}s"'
        encoded = msgspec.json.encode(body)
        try:
            async with asyncio.timeout(seconds):
                context = await self._context(where.ca_bundle)
                status, answer = await self._post(place, encoded, context=context, seconds=seconds)
        except TimeoutError as error:
            raise CallError(f"{shown}: context deadline exceeded") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CallError(f"{shown}: {_network_fault(error)}") from error
        if not 200 <= status < 300:
            raise CallError(_status_problem(status, answer))
        try:
            return msgspec.json.decode(answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CallError(f"couldn't decode the answer as JSON: {error}") from error

    async def _post(self, place: _Place, body: bytes, *, context: ssl.SSLContext, seconds: int) -> tuple[int, bytes]:
        import aiohttp
        from yarl import URL

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, ttl_dns_cache=10)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Host": urlsplit(place.url).netloc}
        async with self._session.post(
            URL(f"{place.address}?timeout={seconds}s", encoded=True),
            data=body,
            headers=headers,
            ssl=context,
            server_hostname=place.server_name,
            allow_redirects=False,
        ) as response:
            answer = bytearray()
            async for chunk in response.content.iter_chunked(1 << 16):
                answer += chunk
                if len(answer) > MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
            return response.status, bytes(answer)

    def _place(self, where: ClientConfig) -> _Place:
        if where.service is None:
            parts = urlsplit(where.url)
            if not parts.hostname:
                raise CallError("webhook configuration must have either service or URL")
            return _Place(where.url, where.url, parts.hostname)
        return self._service_place(where.service)

    def _service_place(self, service: ServiceReference) -> _Place:
        name = f"{service.name}.{service.namespace}.svc"
        path = service.path if service.path.startswith("/") or not service.path else f"/{service.path}"
        host, port = resolve(self._store, service, self._randomness)
        address = f"[{host}]" if ":" in host else host
        return _Place(f"https://{name}:{service.port}{path}", f"https://{address}:{port}{path}", name)

    async def _context(self, bundle: str) -> ssl.SSLContext:
        """The TLS context for an authority; created in a thread, since reading a machine's own store takes long."""
        context = self._contexts.get(bundle)
        if context is None:
            context = await in_thread(_trust, bundle)
            self._contexts[bundle] = context
            if len(self._contexts) > _CONTEXTS:
                self._contexts.popitem(last=False)
        else:
            self._contexts.move_to_end(bundle)
        return context


def _trust(bundle: str) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    try:
        pem = base64.b64decode(bundle, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("caBundle holds no certificates in PEM form") from error
    try:
        return ssl.create_default_context(cadata=pem)
    except ssl.SSLError as error:
        raise ValueError("unable to load root certificates: caBundle holds none in PEM form") from error


def _network_fault(error: Exception) -> str:
    """The error as Go words it, which users search for."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        detail = getattr(cause, "verify_message", "") or str(cause)
        known = {
            "unable to get local issuer certificate": "certificate signed by unknown authority",
            "self-signed certificate": "certificate signed by unknown authority",
            "self-signed certificate in certificate chain": "certificate signed by unknown authority",
            "certificate has expired": "certificate has expired or is not yet valid",
        }
        return f"tls: failed to verify certificate: x509: {known.get(detail, detail)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        no_listener = error.os_error.errno == errno.ECONNREFUSED
        detail = "connect: connection refused" if no_listener else str(error.os_error.strerror or error.os_error)
        return f"dial tcp {error.host}:{error.port}: {detail}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _status_problem(status: int, answer: bytes) -> str:
    text = answer[:2048].decode("utf-8", "replace").strip()
    match status:
        case 404:
            return "the server could not find the requested resource"
        case 401:
            return "the server has asked for the client to provide credentials"
        case 405:
            return "the server does not allow this method on the requested resource"
    if status >= 500:
        return f'an error on the server ("{text or "unknown"}") has prevented the request from succeeding'
    return f"the server rejected our request for an unknown reason: {status} {text}".rstrip()
