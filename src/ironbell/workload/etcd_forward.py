"""Connections to the etcd of workload clusters through their API servers: to port 2379 of a member's static Pod.

The client's certificate is signed by the cluster's etcd authority, which also verifies the member's; names are not
compared, because a certificate cannot contain the name of a Pod. The client's certificate is created once per authority
and day. External etcd is never connected to.

Failure modes: `EtcdUnreachableError` with the cause: no connection to the cluster, a missing Pod, an authority that
cannot sign, TLS.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{cluster,etcd_client_generator}.go.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ironbell.api.client import Api, NotFound
from ironbell.api.core.secret import SECRET
from ironbell.base.clock import Clock
from ironbell.base.errors import IronbellError
from ironbell.base.ports import ETCD_PORT
from ironbell.contract.clusters.secrets import Purpose, key_pair_of, secret_name
from ironbell.contract.pki import KeyAlgorithm, KeyPair, Subject, create_signed_pair
from ironbell.contract.system import Runtime
from ironbell.kube.transport.tls_sources import client_context
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import EtcdUnreachableError
from ironbell.workload.etcd_client import EtcdClient, etcd_over
from ironbell.workload.following import WORKLOAD_ACCESS, workloads_of
from ironbell.workload.link import Forwards

DIAL_S: Final = 10.0
_NAMESPACE: Final = "kube-system"
_CLIENT: Final = Subject("cluster-api.x-k8s.io")
_LIFETIME: Final = timedelta(days=3650)
_KEPT: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Kept:
    version: str
    until: datetime
    tls: ssl.SSLContext


class ForwardedEtcd:
    """Connects to members; `connect` is an `EtcdConnect`."""

    def __init__(self, workloads: Workloads, api: Api, clock: Clock) -> None:
        """`api` is the management cluster's, which stores the authorities."""
        self._workloads = workloads
        self._api = api
        self._clock = clock
        self._contexts: dict[ClusterKey, _Kept] = {}

    @asynccontextmanager
    async def connect(self, cluster: ClusterKey, node: str) -> AsyncIterator[EtcdClient]:
        """Connect to the member on a node, which has responded once.

        Raises:
            EtcdUnreachableError: the member cannot be reached.
        """
        pod = f"etcd-{node}"
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(DIAL_S):
                    tls = await self._context(cluster)
                    link = self._workloads.link(cluster)
                    if not isinstance(link, Forwards):
                        raise EtcdUnreachableError("the connection to the cluster cannot forward ports of Pods")
                    tunnel = await stack.enter_async_context(link.forward(_NAMESPACE, pod, ETCD_PORT))
                    client = await stack.enter_async_context(etcd_over(tunnel, tls, pod))
                    await client.status()
            except TimeoutError as error:
                raise EtcdUnreachableError(f"pod {_NAMESPACE}/{pod}: no response within {DIAL_S:g} s") from error
            except EtcdUnreachableError:
                raise
            except IronbellError as error:
                raise EtcdUnreachableError(f"pod {_NAMESPACE}/{pod}: {error.message}") from error
            yield client

    async def _context(self, cluster: ClusterKey) -> ssl.SSLContext:
        name = secret_name(cluster.name, Purpose.ETCD_CA)
        try:
            secret = SECRET.decode(await self._api.get(SECRET.collection, cluster.namespace, name))
        except NotFound:
            where = f"{cluster.namespace}/{name}"
            raise EtcdUnreachableError(f"Secret {where} with the authority of etcd does not exist") from None
        version, now = secret.metadata.resource_version, self._clock.now()
        kept = self._contexts.get(cluster)
        if kept is None or kept.version != version or kept.until < now:
            self._contexts = {key: context for key, context in self._contexts.items() if context.until >= now}
            tls = await asyncio.to_thread(_tls_context, key_pair_of(secret), now)
            kept = self._contexts[cluster] = _Kept(version, now + _KEPT, tls)
        return kept.tls


def _tls_context(authority: KeyPair, now: datetime) -> ssl.SSLContext:
    pair = create_signed_pair(authority, _CLIENT, KeyAlgorithm.ECDSA_P256, now, lifetime=_LIFETIME)
    tls = client_context(
        authority=authority.certificate, certificate=pair.certificate, key=pair.key, where="etcd's authority"
    )
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    # authorities of users need not follow RFC 5280: kubeadm and etcd accept others
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    tls.set_alpn_protocols(["h2"])
    return tls


def forwarded_etcd(runtime: Runtime) -> ForwardedEtcd:
    """Return access to the etcd members of workload clusters, through their API servers."""
    return ForwardedEtcd(runtime.shared(workloads_of), runtime.own_api(WORKLOAD_ACCESS), runtime.clock)
