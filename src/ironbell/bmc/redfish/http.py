"""Requests to one Redfish service: sessions, certificates, and errors by their problem.

A session is opened with user name and password and closed at the end; a service without sessions, or without room for
one, gets Basic authentication with each request. A session that has expired is opened again, once per request.

A service's responses select paths of later requests, never their host: only the path of a link is used, redirects are
not followed, and proxies of the environment are not used. Responses over 4 MiB are rejected. Text of a service is sent
back in a header, or quoted in an error, only if it is short and printable.

Source: DMTF DSP0266 sections 8 (responses, errors) and 13 (security); bmc-toolbox/bmclib: internal/redfishwrapper.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from ironbell.base.errors import os_problem
from ironbell.base.ports import HTTPS_PORT
from ironbell.base.printable import printable
from ironbell.bmc.driver import (
    AuthenticationError,
    BmcError,
    BmcProblem,
    BusyError,
    MalformedResponseError,
    OutcomeUnknownError,
    RejectedError,
    UnreachableError,
    UnsupportedError,
    UntrustedCertificateError,
    remedy_of,
)

CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
LOGOUT_TIMEOUT_S = 5.0
MAX_RESPONSE = 4 << 20
MAX_LINK = 1024
"""Characters of a link."""
ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
_SHOWN = 300
_MAX_HEADER = 4096

Document = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """Address and credentials of a service."""

    host: str
    port: int = HTTPS_PORT
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    insecure_tls: bool = False
    ca_certificate: str = field(default="", repr=False)
    """PEM of the authority to trust; empty for the authorities of the operating system."""
    use_basic_auth: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return f"https://{host}:{self.port}"


@dataclass(frozen=True)
class Response:
    """Status, headers and the JSON object of the body, which is empty for an empty body."""

    status: int
    headers: dict[str, str]
    document: Document


class RedfishHttp:
    """A connection to one service. Call `open` first and `close` last."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=_tls(endpoint), limit=4),
            timeout=timeout,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._token = ""
        self._session_path = ""
        self._basic: aiohttp.BasicAuth | None = None
        self.root: Document = {}
        """The service root, which is read when the session is opened."""

    async def open(self) -> None:
        """Log in.

        Raises:
            BmcError: the service cannot be reached, or rejects the login.
        """
        basic = aiohttp.BasicAuth(self._endpoint.username, self._endpoint.password)
        if self._endpoint.use_basic_auth:
            self._basic = basic
            self.root = await self.get(ROOT)
            return
        try:
            # The root needs no login by the standard; services that require one nevertheless are read afterwards.
            self.root = await self.get(ROOT)
        except AuthenticationError:
            self.root = {}
        # A rejected password is not tried again another way: BMCs lock accounts after few failures.
        if not self.root or self._sessions_path() or "SessionService" in self.root:
            try:
                await self._log_in()
            except (UnsupportedError, RejectedError):
                self._token = ""
        if not self._token:
            self._basic = basic
        if "Systems" not in self.root:
            self.root = await self.get(ROOT)

    async def _log_in(self) -> None:
        self._token = self._session_path = ""
        login = {"UserName": self._endpoint.username, "Password": self._endpoint.password}
        answer = await self._send("POST", self._sessions_path() or SESSIONS, login, changes=False, logs_in=True)
        self._token = _for_header(answer.headers.get("x-auth-token", ""))
        self._session_path = answer.headers.get("location", "") or str(answer.document.get("@odata.id", ""))

    def _sessions_path(self) -> str:
        links = self.root.get("Links")
        sessions = links.get("Sessions") if isinstance(links, dict) else None
        path = sessions.get("@odata.id") if isinstance(sessions, dict) else None
        return path if isinstance(path, str) else ""

    async def close(self) -> None:
        """Log out if possible, and close the connection."""
        try:
            if self._token and self._session_path:
                async with asyncio.timeout(LOGOUT_TIMEOUT_S):
                    await self._send("DELETE", self._session_path, changes=False)
        except (BmcError, TimeoutError):
            self._token = ""
        finally:
            await self._session.close()

    async def get(self, path: str) -> Document:
        """The document at a path."""
        return (await self.request("GET", path, changes=False)).document

    async def request(
        self, method: str, path: str, body: Document | None = None, *, changes: bool, etag: str = ""
    ) -> Response:
        """Send a request. With `changes`, a lost response leaves the outcome unknown.

        Raises:
            BmcError: by problem; see `ironbell.bmc.driver`.
        """
        try:
            return await self._send(method, path, body, changes=changes, etag=etag)
        except AuthenticationError:
            if not self._token:
                raise
            # Sessions expire, also when the BMC restarts.
            await self._log_in()
        return await self._send(method, path, body, changes=changes, etag=etag)

    async def _send(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        changes: bool,
        etag: str = "",
        logs_in: bool = False,
    ) -> Response:
        headers = {"Accept": "application/json", "OData-Version": "4.0"}
        headers |= {"X-Auth-Token": self._token} if self._token else {}
        headers |= {"If-Match": etag} if _for_header(etag) else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        sent = False
        try:
            request = self._session.request(
                method,
                self._endpoint.url + own_path(path),
                data=msgspec.json.encode(body) if body is not None else None,
                headers=headers,
                auth=self._basic,
                allow_redirects=False,
            )
            sent = True
            async with request as response:
                text = await _body(response, self._endpoint.host)
                if response.status == 403 and logs_in:
                    raise AuthenticationError(f"{self._endpoint.host}: user name or password is rejected")
                if response.status >= 400 and logs_in:
                    # Some services quote the body that they reject, and here that is the password.
                    text = b""
                return _response(response, text, f"{method} {path}", self._endpoint.host, changes=changes)
        except aiohttp.ClientConnectorCertificateError as error:
            raise _untrusted(self._endpoint.host, error.certificate_error) from error
        except aiohttp.ClientConnectorError as error:
            where = f"{self._endpoint.host}:{self._endpoint.port}"
            problem = _plain(error.os_error or error)
            message = f"cannot reach the BMC at {where}: {problem}; {remedy_of(BmcProblem.UNREACHABLE)}"
            raise UnreachableError(message) from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            message = f"{self._endpoint.host}: no response to {method} {path}: {_plain(error)}"
            raise (OutcomeUnknownError(message) if changes and sent else UnreachableError(message)) from error


async def prepare(endpoint: Endpoint) -> None:
    """Load certificates for an endpoint, in a thread because that takes too long for the event loop.

    Raises:
        UntrustedCertificateError: the authority's certificate is not valid PEM.
    """
    await asyncio.to_thread(_tls, endpoint)


def own_path(link: str) -> str:
    """The path of a link of a service, regardless of the host in it.

    Raises:
        MalformedResponseError: the link has no valid path.
    """
    path = link
    if "://" in link.partition("?")[0]:
        path = "/" + link.split("://", 1)[1].partition("/")[2]
    if not path.startswith("/") or path.startswith("//") or not path.isprintable() or {" ", "\\"} & set(path):
        raise MalformedResponseError("the service returned a link without a valid path")
    if len(path) > MAX_LINK:
        raise MalformedResponseError(f"the service returned a link of more than {MAX_LINK} characters")
    return path


def listed(values: Iterable[object]) -> str:
    """The values that a service lists, for an error: in one line, and shortened."""
    text = printable(" ".join(", ".join(sorted(map(str, values))).split()))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _for_header(text: str) -> str:
    """Text of a service for a header of a request; empty if it is not valid in a header."""
    return text if text.isascii() and text.isprintable() and len(text) <= _MAX_HEADER else ""


async def _body(response: aiohttp.ClientResponse, host: str) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_RESPONSE:
            raise MalformedResponseError(f"{host}: a response is larger than {MAX_RESPONSE} bytes")
    return b"".join(parts)


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        return _context(endpoint.ca_certificate, insecure=endpoint.insecure_tls)
    except (ssl.SSLError, ValueError) as error:
        message = f"{endpoint.host}: the authority's certificate is not valid PEM: {error}"
        raise UntrustedCertificateError(message) from error


@functools.lru_cache(maxsize=64)
def _context(ca_certificate: str, *, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_certificate or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # old BMCs have weak keys and old protocols, which do not matter without verification
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


def _untrusted(host: str, error: Exception) -> UntrustedCertificateError:
    reason = getattr(error, "verify_message", "") or str(error)
    return UntrustedCertificateError(f"{host}: the certificate is not trusted: {reason}")


def _plain(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "timed out"
    text = os_problem(error) if isinstance(error, OSError) else str(error)
    return printable(" ".join(text.split()))[:_SHOWN] or type(error).__name__


def _response(response: aiohttp.ClientResponse, text: bytes, request: str, host: str, *, changes: bool) -> Response:
    headers = {name.lower(): value for name, value in response.headers.items()}
    document: Any = {}
    if text.strip():
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            document = None
    if response.status >= 400:
        raise _error(response.status, document if isinstance(document, dict) else {}, request, host, changes=changes)
    if response.status >= 300:
        raise MalformedResponseError(f"{host}: {request}: the service returned a redirect (HTTP {response.status})")
    if isinstance(document, dict):
        return Response(response.status, headers, document)
    if changes:
        # The change was accepted; its body is not used.
        return Response(response.status, headers, {})
    raise MalformedResponseError(f"{host}: {request}: the response is not a JSON object")


def _error(status: int, document: Document, request: str, host: str, *, changes: bool) -> BmcError:
    message = message_of(document)
    text = f"{host}: {request}: {message or f'HTTP {status}'}"
    match status:
        case 401:
            return AuthenticationError(f"{host}: user name or password is rejected{': ' + message if message else ''}")
        case 403:
            return RejectedError(f"{text}; give the BMC's user the role Operator")
        case 404 | 405 | 501:
            return UnsupportedError(text)
        case 408 | 412 | 428 | 429 | 502 | 503 | 504:
            return BusyError(text)
    if status < 500:
        return RejectedError(text)
    # some services act and then return an error: a retry may interrupt the server twice
    return OutcomeUnknownError(text) if changes else BusyError(text)


def message_of(document: Document) -> str:
    """The most severe message of a Redfish error, in one line."""
    error = document.get("error")
    if not isinstance(error, dict):
        return ""
    extended = error.get("@Message.ExtendedInfo")
    entries = [extended] if isinstance(extended, dict) else extended if isinstance(extended, list) else []
    ranked = sorted(
        (entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("Message"), str)),
        key=lambda entry: {"Critical": 0, "Warning": 1}.get(str(entry.get("Severity")), 2),
    )
    text = ranked[0]["Message"] if ranked else error.get("message", "")
    return printable(" ".join(str(text).split()))[:_SHOWN]
