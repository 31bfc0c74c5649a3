"""Simulated clusters over real sockets, for load: each on a port of its own, with certificates of its own authority.

A client authenticates with the certificate of its kubeconfig, as with a real API server. While a cluster does not
answer, nothing listens on its port. API servers and etcd members are reached through port-forwards to their pods.

Source: kubernetes/kubernetes: cmd/kubeadm/app/phases/certs/certs.go for the certificates.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from cryptography.hazmat.primitives.asymmetric import ec

from ironbell.apiserver.http.content.documents import Documents
from ironbell.apiserver.http.handler import Handler
from ironbell.apiserver.http.server.listener import Listener
from ironbell.apiserver.http.server.message import Request, Response
from ironbell.apiserver.identities.accounts import AccountTokens
from ironbell.apiserver.identities.bearer import BearerTokens
from ironbell.apiserver.identities.jwt import SigningKey
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.ports import ETCD_PORT
from ironbell.contract.pki import Subject
from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster.cluster import Endpoint, SimCluster
from ironbell.lab.sim.cluster.etcd_service import serve_member
from ironbell.lab.sim.cluster.servercertificates import NAMES, api_server_of, server_tls
from ironbell.lab.sim.serving.frontdoor import FrontDoor
from ironbell.workload.etcd import EtcdUnreachableError

FIRST_PORT, LAST_PORT = 20000, 29999
_RETRY_S = 1.0

_log = structlog.get_logger()


class NoPortError(IronbellError):
    """All ports for clusters are in use."""

    reason = "NoPortLeft"


class Ports:
    """Gives each cluster a port, and the same one again.

    Nothing listens on a port before its cluster answers, so that another simulation could consider it free: the port of
    the same number for UDP is held as long, and shows that it is not.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._ports: dict[Key, tuple[int, socket.socket]] = {}
        self._next = FIRST_PORT

    def endpoint(self, cluster: Key) -> Endpoint:
        """Address of a cluster's API.

        Raises:
            NoPortError: all ports are in use.
        """
        held = self._ports.get(cluster)
        if held is None:
            held = self._ports[cluster] = self._claim()
        return Endpoint(self._host, held[0])

    def close(self) -> None:
        """Release all ports."""
        for _port, claim in self._ports.values():
            claim.close()
        self._ports.clear()

    def _claim(self) -> tuple[int, socket.socket]:
        count = LAST_PORT - FIRST_PORT + 1
        for step in range(count):
            port = FIRST_PORT + (self._next - FIRST_PORT + step) % count
            claim = _held(self._host, port) if _can_bind(self._host, port) else None
            if claim is not None:
                self._next = port + 1
                return port, claim
        raise NoPortError(f"all ports from {FIRST_PORT} to {LAST_PORT} are in use")


class Serving:
    """Serves clusters as long as they answer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signing_key = SigningKey(ec.generate_private_key(ec.SECP256R1()))

    async def serve(self, cluster: SimCluster) -> None:
        """Listen while the cluster answers, until cancelled."""
        while True:
            async with cluster.inside():
                pass
            try:
                async with self._listening(cluster):
                    await cluster.closed()
            except (IronbellError, OSError) as error:
                _log.warning("simulated cluster not served", cluster="/".join(cluster.key), cause=str(error))
                await asyncio.sleep(_RETRY_S)

    @asynccontextmanager
    async def _listening(self, cluster: SimCluster) -> AsyncIterator[None]:
        authority = cluster.authority
        if authority is None:
            yield
            return
        names = (*NAMES, cluster.endpoint.host)
        subject = Subject("kube-apiserver", alternatives=names, is_server=True, is_client=False)
        tls = await asyncio.to_thread(server_tls, authority, subject, self._clock.now(), ["http/1.1"])
        server = cluster.server
        accounts = AccountTokens(
            self._signing_key, server.context.store, clock=server.clock, randomness=server.randomness
        )
        documents = Documents(server, accounts)
        documents.address = str(cluster.endpoint)
        handler = Handler(server, BearerTokens([], accounts), documents)
        listener = Listener(_slowed(handler, cluster), server.clock)
        doors: set[FrontDoor] = set()

        async def open_port(pod: str, port: int, sock: socket.socket) -> None:
            if node := api_server_of(pod):
                tls = await asyncio.to_thread(cluster.api_server_tls, node)
                await asyncio.get_running_loop().connect_accepted_socket(asyncio.Protocol, sock=sock, ssl=tls)
            else:
                await _open_etcd(cluster, pod, port, sock, self._clock)

        try:
            await listener.listen(
                cluster.endpoint.host,
                cluster.endpoint.port,
                tls,
                wrap=lambda inner: FrontDoor(inner, open_port, doors),
            )
            yield
        finally:
            handler.streams.close()
            for door in list(doors):
                door.abort()
            await listener.close(grace_s=0)


def _slowed(handler: Handler, cluster: SimCluster) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        if cluster.slow_s:
            await asyncio.sleep(cluster.slow_s)
        return await handler(request)

    return handle


async def _open_etcd(cluster: SimCluster, pod: str, port: int, sock: socket.socket, clock: Clock) -> None:
    name = pod.removeprefix("etcd-")
    if port != ETCD_PORT or name == pod or cluster.etcd_authority is None:
        raise EtcdUnreachableError(f"nothing listens on port {port} of pod {pod}")
    tls = cluster.etcd_contexts.get(name)
    if tls is None:
        subject = Subject(name, alternatives=(name, "localhost"), is_server=True)
        authority, now = cluster.etcd_authority, clock.now()
        tls = await asyncio.to_thread(server_tls, authority, subject, now, ["h2"], required=True)
        cluster.etcd_contexts[name] = tls
    await serve_member(cluster.etcd, name, sock, tls)


def _held(host: str, port: int) -> socket.socket | None:
    """A socket that keeps others from using the port; None if it is in use."""
    claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        claim.bind((host, port))
    except OSError:
        claim.close()
        return None
    return claim


def _can_bind(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
        except OSError:
            return False
        return True
