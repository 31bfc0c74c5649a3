"""Opening the embedded API to clients: TLS for people and other machines, a local socket for our own processes.

Started in an empty folder, it creates its authority, its certificate and the administrator's kubeconfig there; started
again, it keeps them. Over TLS a client shows a certificate of our authority or a token, over the local socket a token.

Failure modes: `PkiError` when the folder's files are unusable; `ListenError` when an address cannot be listened on.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import structlog

from ironbell.apiserver.access.auth import Tokens
from ironbell.apiserver.access.identity import MASTERS
from ironbell.apiserver.access.kubeconfig import Credentials, kubeconfig, write_kubeconfig
from ironbell.apiserver.access.pki import Authority, KeyPair, create_private_folder
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.http.audit import AuditSink
from ironbell.apiserver.http.content.documents import Documents
from ironbell.apiserver.http.handler import Handler
from ironbell.apiserver.http.server.listener import Listener
from ironbell.apiserver.identities.accounts import AccountTokens, Reference
from ironbell.apiserver.identities.bearer import BearerTokens, StaticTokens
from ironbell.apiserver.identities.jwt import SigningKey
from ironbell.apiserver.identities.token_request import TokenRequests
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.subresources import Action
from ironbell.base.errors import IronbellError, Retry
from ironbell.base.ports import bind_problem

SHUTDOWN_TIMEOUT_S = 2
ADMIN_USER = "kubernetes-admin"

_SECRET_TOKEN_S = 20 * 365 * 24 * 3600
"""Lifetime of tokens in Secrets: longer than that of any server."""

_LOCAL_NAMES = ("127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")

_MOST_PATH_BYTES = 107  # unix(7)

_log = structlog.get_logger()


class ListenError(IronbellError):
    """An address cannot be listened on."""

    reason, retry = "AddressUnusable", Retry.NEVER


class Running(msgspec.Struct, frozen=True):
    """A running server."""

    host: str
    port: int
    """Port of the TLS listener; zero without one."""
    kubeconfig: Path | None
    """The administrator's kubeconfig; None without a TLS listener."""
    authority: Authority
    tokens: Tokens
    unix_socket: Path | None

    @property
    def url(self) -> str:
        """URL of the TLS listener on this machine."""
        return f"https://{_reachable(self.host)}:{self.port}"

    def write_kubeconfig(self, path: Path, *, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a certificate for another identity. Blocks for milliseconds; a second call renews it."""
        return _write_kubeconfig(path, self.authority, server=self.url, user=user, groups=groups)


class _Pki(msgspec.Struct, frozen=True):
    authority: Authority
    server: KeyPair
    tokens: Tokens
    signing_key: SigningKey
    static_tokens: StaticTokens | None


_OTHER_PORT = "choose another port with --api-port"


@asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    data_dir: Path,
    tls_address: tuple[str, int] | None = ("127.0.0.1", 0),
    unix_socket: Path | None = None,
    unix_socket_mode: int = 0o600,
    advertise: Sequence[str] = (),
    audit: AuditSink | None = None,
    token_file: Path | None = None,
) -> AsyncIterator[Running]:
    """Serve clients while the block runs; leaving it ends all watches and closes within seconds.

    Port zero chooses a free one. `advertise` are further host names and addresses that clients use. The files live in
    `data_dir`: `pki/`, `tokens.json` and `kubeconfig`, all for their owner only. `token_file` names further tokens.

    Raises:
        PkiError: the files are unusable.
        ListenError: an address cannot be listened on.
    """
    names = [*_LOCAL_NAMES, socket.gethostname(), *_own_address(tls_address), *advertise]
    pki = await asyncio.to_thread(_prepare, server, data_dir, names, token_file)
    accounts = AccountTokens(pki.signing_key, server.context.store, clock=server.clock, randomness=server.randomness)
    _offer_tokens(server, accounts, pki)
    documents = Documents(server, accounts)
    static = [pki.static_tokens] if pki.static_tokens is not None else []
    handler = Handler(server, BearerTokens([pki.tokens, *static], accounts), documents, audit=audit)
    listener = Listener(handler, server.clock)
    try:
        host, port = await _listen(listener, pki, tls_address)
        if unix_socket is not None:
            await _listen_locally(listener, unix_socket, unix_socket_mode)
        running = Running(host, port, None, pki.authority, pki.tokens, unix_socket)
        if tls_address is not None:
            path = await asyncio.to_thread(
                running.write_kubeconfig, data_dir / "kubeconfig", user=ADMIN_USER, groups=[MASTERS]
            )
            running = Running(host, port, path, pki.authority, pki.tokens, unix_socket)
        documents.address = f"{_reachable(host)}:{port}"
        _log.info("api is served", address=documents.address, unix_socket=str(unix_socket or ""))
        yield running
    finally:
        handler.streams.close()
        await listener.close(grace_s=SHUTDOWN_TIMEOUT_S)
        if unix_socket is not None:
            _remove(unix_socket)


def _prepare(server: ApiServer, data_dir: Path, names: Sequence[str], token_file: Path | None) -> _Pki:
    create_private_folder(data_dir)
    authority = Authority(data_dir / "pki", server.clock)
    return _Pki(
        authority,
        authority.server(names),
        Tokens(data_dir / "tokens.json", server.randomness),
        SigningKey.load(data_dir / "pki" / "sa.key"),
        StaticTokens(token_file) if token_file is not None else None,
    )


def _offer_tokens(server: ApiServer, accounts: AccountTokens, pki: _Pki) -> None:
    """Serve token requests for ServiceAccounts, and issue the tokens of Secrets."""

    def for_secret(account: Entry, secret: Entry) -> str:
        bound = Reference("secrets", secret.name, secret.uid)
        return accounts.issue(account, audiences=accounts.audiences, seconds=_SECRET_TOKEN_S, bound=bound)

    requests = TokenRequests(accounts, server.context.store, server.clock)
    action = Action("authentication.k8s.io", "v1", "TokenRequest", requests)
    server.context.actions.register("", "serviceaccounts", subresource="token", action=action)
    server.accounts.publish(pki.authority.certificate_pem, for_secret)


async def _listen(listener: Listener, pki: _Pki, address: tuple[str, int] | None) -> tuple[str, int]:
    if address is None:
        return "", 0
    host, port = address
    try:
        return host, await listener.listen(host, port, _tls(pki))
    except OSError as error:
        task = f"serve the Kubernetes API on port {port} of {host}"
        problem = bind_problem(error, task=task, protocol="tcp", port=port, remedy=_OTHER_PORT)
        raise ListenError(problem) from error


async def _listen_locally(listener: Listener, path: Path, mode: int) -> None:
    try:
        await listener.listen_locally(path)
        _restrict(path, mode)
    except OSError as error:
        is_long = len(os.fsencode(path)) > _MOST_PATH_BYTES
        remedy = f"; the path of a socket has at most {_MOST_PATH_BYTES} bytes: choose a shorter folder" * is_long
        raise ListenError(f"cannot listen on {path}: {error.strerror or error}{remedy}") from error


def _restrict(path: Path, mode: int) -> None:
    path.chmod(mode)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _tls(pki: _Pki) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(pki.server.certificate, pki.server.key)
    context.load_verify_locations(cadata=pki.authority.certificate_pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _write_kubeconfig(path: Path, authority: Authority, *, server: str, user: str, groups: Sequence[str]) -> Path:
    content = kubeconfig(
        server=server,
        authority_pem=authority.certificate_pem,
        user=user,
        credentials=Credentials(certificate=authority.client(user, groups)),
        name="ironbell",
    )
    return write_kubeconfig(path, content)


def _own_address(address: tuple[str, int] | None) -> list[str]:
    return [address[0]] if address is not None and address[0] not in {"", "0.0.0.0", "::"} else []  # noqa: S104


def _reachable(host: str) -> str:
    """A host to connect to, for one to listen on."""
    local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104
    reachable = local.get(host, host)
    return f"[{reachable}]" if ":" in reachable and not reachable.startswith("[") else reachable
