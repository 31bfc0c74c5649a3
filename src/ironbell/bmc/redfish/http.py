"""Requests to one Redfish service: session, certificates, errors by meaning.

A session is opened by name and password and closed at the end; a service without sessions, or without room for one,
gets Basic authentication with each request. A session that the service forgot is opened again, once per request.

What a service answers decides where its own requests go, never to which host: links are taken for their path alone,
redirects are not followed, proxies of the environment are not used. Answers over 4 MiB are refused. Nothing that a
service says is handed back to it in a header, or quoted in an error, unless it is short and printable.

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
    BusyError,
    MalformedAnswerError,
    OutcomeUnknownError,
    RejectedError,
    UnreachableError,
    UnsupportedError,
    UntrustedCertificateError,
)

CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 30.0
LOGOUT_TIMEOUT_S = 5.0
MAX_ANSWER = 4 << 20
MAX_LINK = 1024
"""Characters of a link."""
ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
_SHOWN = 300
_MAX_HEADER = 4096

Document = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """Where a service is and how to enter it."""

    host: str
    port: int = HTTPS_PORT
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    insecure_tls: bool = False
    ca_certificate: str = field(default="", repr=False)
    """PEM of the authority to trust; empty: the system's."""
    use_basic_auth: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return f"https://{host}:{self.port}"


@dataclass(frozen=True)
class Answer:
    """Status, headers and the JSON object of the body (empty where there is none)."""

    status: int
    headers: dict[str, str]
    document: Document


class RedfishHttp:
    """One service's connection. `open` first, `close` at last."""

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
        """The service root, read when the session was opened."""

    async def open(self) -> None:
        """Log in.

        Raises:
            BmcError: the service cannot be reached or entered.
        """
        basic = aiohttp.BasicAuth(self._endpoint.username, self._endpoint.password)
        if self._endpoint.use_basic_auth:
            self._basic = basic
            self.root = await self.get(ROOT)
            return
        try:
            # The root is for everybody; services that guard it all the same have it after the login.
            self.root = await self.get(ROOT)
        except AuthenticationError:
            self.root = {}
        # A refused password is not tried again another way: BMCs lock accounts after few failures.
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
        """Log out as far as possible, and end the connection."""
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
    ) -> Answer:
        """Send a request. `changes` says that a lost answer leaves the outcome open.

        Raises:
            BmcError: by meaning; see `driver`.
        """
        try:
            return await self._send(method, path, body, changes=changes, etag=etag)
        except AuthenticationError:
            if not self._token:
                raise
            # Sessions end by themselves, and when the BMC restarts.
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
    ) -> Answer:
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
                    raise AuthenticationError(f"{self._endpoint.host}: user name or password is refused")
                if response.status >= 400 and logs_in:
                    # Some services quote what they refuse, and here that is the password.
                    text = b""
                return _answer(response, text, f"{method} {path}", self._endpoint.host, changes=changes)
        except aiohttp.ClientConnectorCertificateError as error:
            raise _untrusted(self._endpoint.host, error.certificate_error) from error
        except aiohttp.ClientConnectorError as error:
            where = f"{self._endpoint.host}:{self._endpoint.port}"
            raise UnreachableError(f"cannot connect to {where}: {_plain(error.os_error or error)}") from error
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            what = _plain(error)
            if changes and sent:
                raise OutcomeUnknownError(f"{self._endpoint.host}: no answer to {method} {path}: {what}") from error
            raise UnreachableError(f"{self._endpoint.host}: no answer to {method} {path}: {what}") from error


async def prepare(endpoint: Endpoint) -> None:
    """Load certificates for an endpoint; that takes too long for the event loop.

    Raises:
        UntrustedCertificateError: the authority's certificate is none.
    """
    await asyncio.to_thread(_tls, endpoint)


def own_path(link: str) -> str:
    """The path of a link that a service gave, whatever host it names.

    Raises:
        MalformedAnswerError: it has none.
    """
    path = link
    if "://" in link.partition("?")[0]:
        path = "/" + link.split("://", 1)[1].partition("/")[2]
    if not path.startswith("/") or path.startswith("//") or not path.isprintable() or {" ", "\\"} & set(path):
        raise MalformedAnswerError("the service gives a link that is no path")
    if len(path) > MAX_LINK:
        raise MalformedAnswerError(f"the service gives a link of more than {MAX_LINK} characters")
    return path


def listed(values: Iterable[object]) -> str:
    """What a service lists, for an error: in one line, and not all of it where it is long."""
    text = printable(" ".join(", ".join(sorted(map(str, values))).split()))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _for_header(text: str) -> str:
    """What a service gave us for a header of ours; empty where it cannot be in one."""
    return text if text.isascii() and text.isprintable() and len(text) <= _MAX_HEADER else ""


async def _body(response: aiohttp.ClientResponse, host: str) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            raise MalformedAnswerError(f"{host}: an answer is larger than {MAX_ANSWER} bytes")
    return b"".join(parts)


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        return _context(endpoint.ca_certificate, insecure=endpoint.insecure_tls)
    except (ssl.SSLError, ValueError) as error:
        raise UntrustedCertificateError(f"{endpoint.host}: the authority's certificate is no PEM: {error}") from error


@functools.lru_cache(maxsize=64)
def _context(ca_certificate: str, *, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_certificate or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # old BMCs have weak keys and old protocols; whoever does not verify does not care
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


def _untrusted(host: str, error: Exception) -> UntrustedCertificateError:
    why = getattr(error, "verify_message", "") or str(error)
    return UntrustedCertificateError(f"{host}: the certificate is not trusted: {why}")


def _plain(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "timed out"
    text = os_problem(error) if isinstance(error, OSError) else str(error)
    return printable(" ".join(text.split()))[:_SHOWN] or type(error).__name__


def _answer(response: aiohttp.ClientResponse, text: bytes, what: str, host: str, *, changes: bool) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    document: Any = {}
    if text.strip():
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            document = None
    if response.status >= 400:
        raise _refusal(response.status, document if isinstance(document, dict) else {}, what, host, changes=changes)
    if response.status >= 300:
        raise MalformedAnswerError(f"{host}: {what} was answered with a redirection (HTTP {response.status})")
    if isinstance(document, dict):
        return Answer(response.status, headers, document)
    if changes:
        # What was asked for is done; nobody reads how the service says so.
        return Answer(response.status, headers, {})
    raise MalformedAnswerError(f"{host}: {what} was answered with something that is no JSON object")


def _refusal(status: int, document: Document, what: str, host: str, *, changes: bool) -> BmcError:
    said = message_of(document)
    text = f"{host}: {what}: {said or f'HTTP {status}'}"
    match status:
        case 401:
            return AuthenticationError(f"{host}: user name or password is refused{': ' + said if said else ''}")
        case 403:
            return RejectedError(f"{text}; does the user have the rights of an operator?")
        case 404 | 405 | 501:
            return UnsupportedError(text)
        case 408 | 412 | 428 | 429 | 502 | 503 | 504:
            return BusyError(text)
    if status < 500:
        return RejectedError(text)
    # some services act and then answer with an error: whoever repeats may interrupt the machine twice
    return OutcomeUnknownError(text) if changes else BusyError(text)


def message_of(document: Document) -> str:
    """The most telling message of a Redfish error, in one line."""
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
