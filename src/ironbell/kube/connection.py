"""Where an API server is and as whom to speak to it: from a kubeconfig, from inside a cluster, or a local socket.

A `Connection` gives headers and a connector. Tokens in files are read again every minute, as those of pods rotate.
Credential plugins (`exec`) and a kubeconfig's `proxy-url` have their place here: `Connection.token` may be any
source of tokens, `proxy` is passed on.

Failure modes: `ConnectionConfigError` names the file and the field. Contents of credentials never appear in messages.

Source: kubernetes/client-go: tools/clientcmd/api/v1/types.go, rest/config.go (InClusterConfig).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp

from ironbell.base.clock import Clock, SystemClock
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml

TokenSource: TypeAlias = Callable[[], Awaitable[str]]
TOKEN_AGE_S = 60.0
POD_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONNECTIONS = 100


class ConnectionConfigError(IronbellError):
    """A kubeconfig or the surroundings do not say how to reach an API server."""

    reason = "InvalidConnection"
    retry = Retry.NEVER


@dataclass(frozen=True)
class Connection:
    """How to reach one server. `server` is its URL; with `socket` it only gives the paths' base."""

    server: str
    token: TokenSource | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    socket: str = ""
    proxy: str = ""
    impersonate: str = ""

    async def headers(self) -> dict[str, str]:
        """The headers that say who is speaking."""
        headers = {"User-Agent": "ironbell"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {await self.token()}"
        if self.impersonate:
            headers["Impersonate-User"] = self.impersonate
        return headers

    def refused(self) -> None:
        """The server does not know us (any more): take up a new token, if there is one."""
        if isinstance(self.token, FileToken):
            self.token.forget()

    def connector(self) -> aiohttp.BaseConnector:
        """A new pool of connections; call it inside the event loop."""
        if self.socket:
            return aiohttp.UnixConnector(path=self.socket, limit=_CONNECTIONS)
        if self.tls is not None:
            return aiohttp.TCPConnector(ssl=self.tls, limit=_CONNECTIONS)
        return aiohttp.TCPConnector(limit=_CONNECTIONS)


def fixed_token(token: str) -> TokenSource:
    """A token that never changes."""

    async def source() -> str:
        return token

    return source


class FileToken:
    """A token in a file that is replaced from time to time."""

    def __init__(self, path: Path, *, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._token = ""
        self._read_s = float("-inf")

    def forget(self) -> None:
        """Read the file again for the next request: the server refuses what was read."""
        self._read_s = float("-inf")

    async def __call__(self) -> str:
        """The token, at most a minute old.

        Raises:
            ConnectionConfigError: the file cannot be read and never could.
        """
        if self._clock.monotonic() - self._read_s < TOKEN_AGE_S:
            return self._token
        try:
            self._token = (await asyncio.to_thread(self._path.read_text)).strip()
            self._read_s = self._clock.monotonic()
        except OSError as error:
            if not self._token:
                raise ConnectionConfigError(f"the token file {self._path} cannot be read: {error.strerror}") from error
        return self._token


def over_socket(path: str | Path, token: str) -> Connection:
    """A server on this machine that listens on a Unix socket."""
    return Connection("http://localhost", token=fixed_token(token), socket=str(path))


def in_cluster(environment: Mapping[str, str] | None = None, *, files: Path = POD_FILES) -> Connection:
    """As the service account of the pod that this runs in.

    Raises:
        ConnectionConfigError: this is no pod.
    """
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConnectionConfigError(
            "this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set; use a kubeconfig"
        )
    bracketed = f"[{host}]" if ":" in host else host
    try:
        tls = ssl.create_default_context(cafile=str(files / "ca.crt"))
    except OSError as error:
        raise ConnectionConfigError(f"{files / 'ca.crt'} cannot be used: {error}") from error
    return Connection(f"https://{bracketed}:{port}", token=FileToken(files / "token"), tls=tls)


def from_kubeconfig(path: str | Path, *, context: str = "") -> Connection:
    """As a kubeconfig says, in its current context or the one named. Reads files: call it before serving.

    Raises:
        ConnectionConfigError: the file or one of its references is unusable.
    """
    path = Path(path)
    try:
        config = goyaml.load(path.read_text())
    except OSError as error:
        raise ConnectionConfigError(f"the kubeconfig {path} cannot be read: {error.strerror}") from error
    except (goyaml.YamlError, UnicodeDecodeError) as error:
        raise ConnectionConfigError(f"the kubeconfig {path} is no YAML: {error}") from error
    if not isinstance(config, dict):
        raise ConnectionConfigError(f"{path} is no kubeconfig")
    return _Kubeconfig(path, config).connection(context or str(config.get("current-context") or ""))


@dataclass(frozen=True)
class _Kubeconfig:
    path: Path
    config: dict[str, Any]

    def connection(self, context: str) -> Connection:
        chosen = self._named("contexts", context, "context")
        cluster = self._named("clusters", str(chosen.get("cluster") or ""), "cluster")
        user = self._named("users", str(chosen.get("user") or ""), "user") if chosen.get("user") else {}
        server = str(cluster.get("server") or "")
        if not server:
            raise ConnectionConfigError(f"{self.path}: the cluster of context {context!r} has no server")
        if user.get("exec") or user.get("auth-provider"):
            raise ConnectionConfigError(
                f"{self.path}: credential plugins are not supported; give the user a token or a client certificate"
            )
        return Connection(
            server,
            token=self._token(user),
            tls=self._tls(cluster, user) if server.startswith("https:") else None,
            proxy=str(cluster.get("proxy-url") or ""),
            impersonate=str(user.get("as") or ""),
        )

    def _named(self, section: str, name: str, inner: str) -> dict[str, Any]:
        for entry in self.config.get(section) or ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(inner), dict):
                found: dict[str, Any] = entry[inner]
                return found
        raise ConnectionConfigError(f"{self.path}: {section} has no entry named {name!r}")

    def _token(self, user: dict[str, Any]) -> TokenSource | None:
        if user.get("token"):
            return fixed_token(str(user["token"]))
        if user.get("tokenFile"):
            return FileToken(self._beside(str(user["tokenFile"])))
        return None

    def _tls(self, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
        authority = self._bytes(cluster, "certificate-authority")
        try:
            tls = ssl.create_default_context(cadata=authority.decode("ascii") if authority else None)
            if cluster.get("insecure-skip-tls-verify"):
                tls.check_hostname = False
                tls.verify_mode = ssl.CERT_NONE
            certificate, key = self._bytes(user, "client-certificate"), self._bytes(user, "client-key")
            if certificate and key:
                _load_pair(tls, certificate, key)
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise ConnectionConfigError(f"{self.path}: a certificate or key is unusable: {error}") from error
        return tls

    def _bytes(self, section: dict[str, Any], name: str) -> bytes:
        """What `name` (a file) or `name`-data (base64) holds."""
        try:
            if section.get(f"{name}-data"):
                return base64.b64decode(str(section[f"{name}-data"]), validate=True)
            return self._beside(str(section[name])).read_bytes() if section.get(name) else b""
        except (binascii.Error, OSError) as error:
            raise ConnectionConfigError(f"{self.path}: {name} is unusable: {error}") from error

    def _beside(self, name: str) -> Path:
        return self.path.parent / name


def _load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give a context its client certificate: Python's ssl takes it from files only."""
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(certificate + b"\n" + key)
        pair.flush()
        tls.load_cert_chain(pair.name)
