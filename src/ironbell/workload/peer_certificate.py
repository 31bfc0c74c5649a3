"""The certificate that a server presents, read through a stream of bytes to it. It is inspected, not trusted.

Failure modes: `PeerCertificateError` if the TLS handshake fails.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster.go (GetAPIServerCertificateExpiry).
"""

from __future__ import annotations

import ssl

from cryptography import x509

from ironbell.base.errors import IronbellError
from ironbell.workload.link import Tunnel


class PeerCertificateError(IronbellError):
    """The other side presents no certificate."""

    reason = "NoCertificateShown"


async def peer_certificate(tunnel: Tunnel) -> x509.Certificate:
    """Return the first certificate of the server at the other end. Cancellation point.

    Raises:
        PeerCertificateError: the server presents no certificate.
        IronbellError: the stream failed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            if data := outgoing.read():
                await tunnel.send(data)
            received = await tunnel.receive()
            if not received:
                raise PeerCertificateError("the connection was closed during the TLS handshake") from None
            incoming.write(received)
        except ssl.SSLError as error:
            raise PeerCertificateError(f"TLS: {error.reason or error}") from error
    presented = tls.getpeercert(binary_form=True)
    if presented is None:
        raise PeerCertificateError("the server presents no certificate")
    return x509.load_der_x509_certificate(presented)
