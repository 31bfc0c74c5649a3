"""Address and identity for an API server: from a kubeconfig, from inside a cluster, or a local socket.

A `Connection` gives headers, a TLS context and a connector. What may be replaced while we run is looked at again: token
and certificate files every minute and after a rejection, the answers of credential plugins when they expire.

Failure modes: `ConnectionConfigError` names the file and the field. Contents of credentials never appear in messages.

Source: kubernetes/client-go: rest/config.go (InClusterConfig), rest/transport.go, transport/round_trippers.go.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from ironbell.kube.transport.exec_plugin import Credential, ExecPlugin, PluginTls, cluster_info, read_exec
from ironbell.kube.transport.kubeconfig import Chosen, Section, choose
from ironbell.kube.transport.proxies import checked_proxy, environment_proxy
from ironbell.kube.transport.tls_sources import FileTls, TlsSource, client_context
from ironbell.kube.transport.tokens import ConnectionConfigError, FileToken, GivenToken, TokenSource, fixed_token

__all__ = [
    "Connection",
    "ConnectionConfigError",
    "FileToken",
    "GivenToken",
    "TokenSource",
    "fixed_token",
    "from_content",
    "from_kubeconfig",
    "in_cluster",
    "over_socket",
]

POD_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONNECTIONS = 100
KEEP_S = 75.0
"""How long a connection without a request is kept: longer than from probe to probe, since TLS begins with work."""


@dataclass(frozen=True)
class Impersonation:
    """User to impersonate, where the server allows it."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        """Impersonate-* headers; several of one name are several headers."""
        single = [("Impersonate-User", self.user), ("Impersonate-Uid", self.uid)]
        many = [("Impersonate-Group", group) for group in self.groups]
        more = [(f"Impersonate-Extra-{quote(key, safe='')}", value) for key, values in self.extra for value in values]
        return [(name, value) for name, value in single if value] + many + more


@dataclass(frozen=True)
class Connection:
    """Connection to one server. `server` is its URL; with `socket` it only gives the paths' base."""

    server: str
    token: TokenSource | None = field(default=None, repr=False)
    tls: ssl.SSLContext | TlsSource | None = None
    socket: str = ""
    proxy: str = field(default="", repr=False)
    impersonate: Impersonation = Impersonation()
    basic: str = field(default="", repr=False)
    """`user:password`, for servers behind a proxy that requires it; a token takes precedence."""
    tls_server_name: str = ""
    """The name that the server's certificate must have, where it is not the URL's."""

    async def headers(self) -> list[tuple[str, str]]:
        """The headers that say who is speaking.

        Raises:
            CredentialError: a credential plugin failed.
            ConnectionConfigError: the token's file cannot be read and never could.
        """
        headers = [("User-Agent", "ironbell"), *self.impersonate.headers()]
        token = await self.token() if self.token is not None else ""
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        elif self.basic:
            headers.append(("Authorization", f"Basic {base64.b64encode(self.basic.encode()).decode()}"))
        return headers

    async def tls_context(self) -> ssl.SSLContext | None:
        """The context for the next connection.

        Raises:
            CredentialError: a credential plugin failed.
        """
        return self.tls if self.tls is None or isinstance(self.tls, ssl.SSLContext) else await self.tls()

    def on_rejection(self, headers: Sequence[tuple[str, str]] = ()) -> bool:
        """Handle a rejected credential: return whether another one is available. `headers` are those of the request."""
        used = next((value.removeprefix("Bearer ") for name, value in headers if name == "Authorization"), "")
        sources: tuple[Any, ...] = (self.token, self.tls)
        renewable = [source.forget for source in sources if hasattr(source, "forget")]
        for forget in renewable:
            forget(used)
        return bool(renewable)

    def connector(self) -> aiohttp.BaseConnector:
        """A new pool of connections; call it inside the event loop."""
        if self.socket:
            return aiohttp.UnixConnector(path=self.socket, limit=_CONNECTIONS)
        return aiohttp.TCPConnector(limit=_CONNECTIONS, keepalive_timeout=KEEP_S)


def over_socket(path: str | Path, token: str) -> Connection:
    """A server on this machine that listens on a Unix socket."""
    return Connection("http://localhost", token=fixed_token(token), socket=str(path))


def in_cluster(environment: Mapping[str, str] | None = None, *, files: Path = POD_FILES) -> Connection:
    """Return the connection of this pod's service account; its token and the cluster's authority may be rotated.

    Raises:
        ConnectionConfigError: this process does not run in a pod.
    """
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConnectionConfigError(
            "this is not a pod: KUBERNETES_SERVICE_HOST and _PORT are not set; use a kubeconfig"
        )
    authority = files / "ca.crt"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

    def build() -> ssl.SSLContext:
        return client_context(authority=authority.read_bytes(), where=str(authority))

    try:
        tls = FileTls(build, [authority])
    except OSError as error:
        raise ConnectionConfigError(f"{authority} cannot be used: {error}") from error
    return Connection(server, token=FileToken(files / "token"), tls=tls, proxy=environment_proxy(server, environment))


def from_kubeconfig(
    path: str | Path | Sequence[Path], *, context: str = "", environment: Mapping[str, str] | None = None
) -> Connection:
    """Return the connection of a kubeconfig (or several, merged), in its current context or the one named. Call it
    before serving.

    Raises:
        ConnectionConfigError: a file or one of its references is unusable.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else list(path)
    # the working directory may be another one when rotated files are read again
    paths = [path.absolute() for path in paths]
    return _connection(choose(paths, context), os.environ if environment is None else environment)


def from_content(chosen: Chosen, *, environment: Mapping[str, str] | None = None) -> Connection:
    """Return the connection of a kubeconfig that is not a file (`kubeconfig.choose_from`).

    Raises:
        ConnectionConfigError: something in it is unusable.
    """
    return _connection(chosen, os.environ if environment is None else environment)


def _connection(chosen: Chosen, environment: Mapping[str, str]) -> Connection:
    cluster, user = chosen.cluster, chosen.user
    if user.text("auth-provider"):
        raise ConnectionConfigError(f"{user.where}: auth-provider was replaced by exec; give the user an exec plugin")
    server = cluster.text("server")
    plugin = _plugin(cluster, user)
    encrypted = server.startswith("https:")
    if cluster.text("proxy-url"):
        proxy = checked_proxy(cluster.text("proxy-url"), where=f"{cluster.where}: proxy-url")
    else:
        proxy = environment_proxy(server, environment)
    return Connection(
        server,
        token=_token(user) or plugin,
        tls=_tls(cluster, user, plugin) if encrypted else None,
        proxy=proxy,
        impersonate=_impersonation(user),
        basic=f"{user.text('username')}:{user.text('password')}" if user.text("username") else "",
        tls_server_name=cluster.text("tls-server-name"),
    )


def _token(user: Section) -> TokenSource | None:
    file = user.file("tokenFile")
    if file is not None:
        return FileToken(file, instead=user.text("token"))
    return fixed_token(user.text("token")) if user.text("token") else None


def _impersonation(user: Section) -> Impersonation:
    extra = user.fields.get("as-user-extra") or {}
    return Impersonation(
        user.text("as"),
        user.text("as-uid"),
        tuple(str(group) for group in user.fields.get("as-groups") or ()),
        tuple((str(key), tuple(str(value) for value in values)) for key, values in extra.items()),
    )


def _tls(cluster: Section, user: Section, plugin: ExecPlugin | None) -> TlsSource:
    names = ((cluster, "certificate-authority"), (user, "client-certificate"), (user, "client-key"))
    files = [file for part, name in names if not part.text(f"{name}-data") and (file := part.file(name)) is not None]

    def build(credential: Credential = Credential()) -> ssl.SSLContext:  # noqa: B008 - frozen
        return client_context(
            authority=cluster.data("certificate-authority"),
            certificate=user.data("client-certificate") or credential.certificate,
            key=user.data("client-key") or credential.key,
            verify=not cluster.fields.get("insecure-skip-tls-verify"),
            where=str(user.where),
        )

    if plugin is None:
        return FileTls(build, files)
    build()  # reports problems of the files before the first request
    return PluginTls(plugin, build)


def _plugin(cluster: Section, user: Section) -> ExecPlugin | None:
    section = user.fields.get("exec")
    if not isinstance(section, dict):
        return None
    info = cluster_info(cluster.fields, cluster.data("certificate-authority"))
    return ExecPlugin(read_exec(section, folder=user.path.parent, cluster=info, where=f"{user.where}: {user.name}"))
