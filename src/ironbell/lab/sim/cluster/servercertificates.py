"""Certificates that simulated servers show: of API servers on their hosts, and of etcd members.

kubeadm makes one for each host. A port-forward to an API server's pod shows it: over sockets, and for replay by direct
call, where the bytes of TLS go through memory.

Source: kubernetes/kubernetes: cmd/kubeadm/app/phases/certs/certs.go.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from ironbell.api.client import Unavailable
from ironbell.contract.pki import CLIENT_LIFETIME, KeyAlgorithm, KeyPair, Subject, create_signed_pair

NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_POD = "kube-apiserver-"


def server_tls(
    authority: KeyPair,
    subject: Subject,
    now: datetime,
    protocols: list[str],
    *,
    required: bool = False,
    lifetime: timedelta = CLIENT_LIFETIME,
) -> ssl.SSLContext:
    """A server's context with a certificate that the authority signs; clients show one that it has signed."""
    pair = create_signed_pair(authority, subject, KeyAlgorithm.ECDSA_P256, now, lifetime=lifetime)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + b"\n" + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    context.load_verify_locations(cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    context.set_alpn_protocols(protocols)
    return context


def api_server_of(pod: str) -> str:
    """The node whose API server the pod is; empty for another pod."""
    return pod.removeprefix(_POD) if pod.startswith(_POD) else ""


class ShownByMemory:
    """The other end of a stream: a server that does TLS and nothing else."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def send(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            raise Unavailable(f"tls: {error.reason or error}") from error

    async def receive(self) -> bytes:
        return self._outgoing.read()


@asynccontextmanager
async def shown_by_memory(context: ssl.SSLContext) -> AsyncIterator[ShownByMemory]:
    """The stream, for as long as the block runs."""
    yield ShownByMemory(context)
