"""Links to simulated clusters by direct call, for replay: nothing uses a socket, and the kubeconfig is still checked.

Its server must be the cluster's, the authority in it the one that kubeadm used, and the client's certificate signed by
that and not past its end.

Source: kubernetes/apiserver: pkg/authentication/request/x509/x509.go.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from ironbell.api.client import Api, NotFound, Unauthorized, Unavailable
from ironbell.apiserver.access.identity import AUTHENTICATED, Identity
from ironbell.base.clock import Clock
from ironbell.contract.pki import KeyPair, PkiError, certificates
from ironbell.kube.decision import Key
from ironbell.kube.transport.kubeconfig import Chosen, choose_from
from ironbell.lab.sim.cloud import Cloud
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.servercertificates import api_server_of, shown_by_memory
from ironbell.workload.link import Tunnel


class SimLink:
    """A `Link` to one simulated cluster; the first probe authenticates it."""

    def __init__(self, cloud: Cloud, key: Key, chosen: Chosen, clock: Clock, wrap: Callable[[Api], Api]) -> None:
        self._cloud, self._key, self._chosen, self._clock, self._wrap = cloud, key, chosen, clock, wrap
        self._api: Api | None = None
        self._verified: tuple[KeyPair, x509.Certificate] | None = None
        """The cluster's authority that accepted the kubeconfig, and the user's certificate in it."""

    @property
    def api(self) -> Api:
        if self._api is None:
            raise Unavailable("the cluster has not been probed yet")
        return self._api

    async def probe(self) -> None:
        cluster = self._find()
        await cluster.passing()
        identity = self._identity(cluster)
        self._api = self._wrap(cluster.client(identity))

    def forward(self, namespace: str, pod: str, port: int) -> AbstractAsyncContextManager[Tunnel]:
        cluster = self._find()
        cluster.require()
        if namespace != "kube-system":
            raise NotFound(f'pods "{pod}" not found')
        return shown_by_memory(cluster.api_server_tls(api_server_of(pod)))

    async def close(self) -> None:
        self._api = None

    def _find(self) -> SimCluster:
        server = self._chosen.cluster.text("server")
        cluster = self._cloud.clusters.get(self._key)
        if cluster is None or cluster.endpoint.server != server:
            raise Unavailable(f"{server} does not answer")
        return cluster

    def _identity(self, cluster: SimCluster) -> Identity:
        """The identity of the kubeconfig's user in the cluster. While the authority stays, only its time is checked."""
        if cluster.authority is None:
            raise Unavailable(f"{cluster.endpoint} does not answer")
        if self._verified is None or self._verified[0] is not cluster.authority:
            self._verified = cluster.authority, self._verify(cluster.authority)
        client = self._verified[1]
        if not client.not_valid_before_utc <= self._clock.now() <= client.not_valid_after_utc:
            raise Unauthorized("Unauthorized")
        return _subject(client)

    def _verify(self, of_cluster: KeyPair) -> x509.Certificate:
        try:
            (authority, *_rest) = certificates(of_cluster.certificate)
            if authority not in certificates(self._chosen.cluster.data("certificate-authority")):
                raise Unavailable("x509: certificate signed by unknown authority")
            (client, *_rest) = certificates(self._chosen.user.data("client-certificate"))
            client.verify_directly_issued_by(authority)
        except (PkiError, InvalidSignature, ValueError, TypeError) as error:
            raise Unauthorized("Unauthorized") from error
        return client


class Links:
    """A `Connect` over all clusters of a cloud; `wrap` puts something between a cluster's API and its callers."""

    def __init__(self, cloud: Cloud, clock: Clock, wrap: Callable[[Api], Api] = lambda api: api) -> None:
        self._cloud, self._clock, self._wrap = cloud, clock, wrap

    def __call__(self, cluster: Key, kubeconfig: bytes) -> SimLink:
        where = f"Secret {'/'.join(cluster)}-kubeconfig"
        return SimLink(self._cloud, cluster, choose_from(kubeconfig, where=where), self._clock, self._wrap)


def _subject(certificate: x509.Certificate) -> Identity:
    def values(name: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(name))

    user, *_more = values(x509.NameOID.COMMON_NAME) or ("",)
    return Identity(user, (*values(x509.NameOID.ORGANIZATION_NAME), AUTHENTICATED))
