"""Resolvers of the queries about a workload cluster.

Each object is read by its name: the Pods of several nodes in parallel, within the limits that `workload` sets per
cluster, and all others in sequence, so that a cluster with one node needs one connection. etcd is queried through the
node that responded last time, then through the others.

Failure modes: `NotConnected` from `workload`, and errors of the cluster's API or etcd.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/{workload_cluster,workload_cluster_conditions,
etcd_client_generator}.go.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from itertools import chain
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from ironbell.api.client import Api, ApiError, ListOptions, NotFound, Selector
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.kind import Collection
from ironbell.base.errors import IronbellError
from ironbell.contract.clusters.kubeconfig import client_certificate_ends
from ironbell.contract.clusters.secrets import VALUE, Purpose, secret_name, value_of
from ironbell.controllers.kubeadm.controlplane.names import (
    COMPONENT_OF_CONDITION,
    LABEL_CONTROL_PLANE_NODE,
    pod_conditions,
)
from ironbell.controllers.kubeadm.controlplane.workload.queries import (
    Addons,
    AddonsView,
    Components,
    ComponentsView,
    ContainerView,
    EtcdCluster,
    EtcdView,
    KubeadmConfigMap,
    KubeconfigEnd,
    PodAnswer,
    PodView,
    ServingCertificate,
)
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Resolvers
from ironbell.workload.access import Workloads
from ironbell.workload.clusterkey import ClusterKey
from ironbell.workload.etcd import Etcd, EtcdConnect, EtcdError, EtcdUnreachableError, MemberStatus
from ironbell.workload.link import Forwards, Tunnel

KUBE_SYSTEM: Final = "kube-system"
CONFIG_MAPS: Final = Collection("", "v1", "configmaps", True)
PODS: Final = Collection("", "v1", "pods", True)
NODES: Final = Collection("", "v1", "nodes", False)
DAEMON_SETS: Final = Collection("apps", "v1", "daemonsets", True)
DEPLOYMENTS: Final = Collection("apps", "v1", "deployments", True)
KUBEADM_CONFIG: Final = "kubeadm-config"
CLUSTER_CONFIGURATION: Final = "ClusterConfiguration"
API_SERVER: Final = "kube-apiserver"
KUBE_PROXY: Final = "kube-proxy"
COREDNS: Final = "coredns"
COREFILE: Final = "Corefile"


class EtcdAccess:
    """Connects to the etcd of workload clusters through a node that responds."""

    def __init__(self, connect: EtcdConnect) -> None:
        self._connect = connect
        self._answered: dict[ClusterKey, str] = {}

    @asynccontextmanager
    async def first_of(self, cluster: ClusterKey, nodes: Sequence[str]) -> AsyncIterator[tuple[Etcd, MemberStatus]]:
        """Connect to the member on one of these nodes; the one that responded last is tried first.

        Raises:
            EtcdUnreachableError: no member responds.
        """
        last = self._answered.get(cluster)
        problems: list[str] = []
        for node in sorted(nodes, key=lambda name: (name != last, name)):
            async with AsyncExitStack() as stack:
                try:
                    etcd = await stack.enter_async_context(self._connect(cluster, node))
                    status = await etcd.status()
                except EtcdError as error:
                    problems.append(error.message)
                    continue
                self._answered[cluster] = node
                yield etcd, status
                return
        self._answered.pop(cluster, None)
        raise EtcdUnreachableError("; ".join(dict.fromkeys(problems)) or "there is no node to connect to")


class Inspector:
    """Queries workload clusters."""

    def __init__(self, api: Api, workloads: Workloads, etcd: EtcdAccess) -> None:
        """`api` is the management cluster's, which stores the kubeconfigs."""
        self._api = api
        self._workloads = workloads
        self._etcd = etcd

    def resolvers(self) -> Resolvers:
        """Return the resolvers by the type of the query."""
        return {
            Components: self.components,
            EtcdCluster: self.etcd_cluster,
            KubeadmConfigMap: self.kubeadm_config,
            Addons: self.addons,
            KubeconfigEnd: self.kubeconfig_end,
            ServingCertificate: self.serving_certificate,
        }

    async def components(self, query: Components) -> ComponentsView:
        """Resolve `Components`."""
        api = await self._workloads.api(query.cluster)
        components = [COMPONENT_OF_CONDITION[type_] for type_ in pod_conditions(query.etcd)]
        labelled = await _labelled(api)
        answers = await asyncio.gather(*(_pods(api, node, components) for node in query.nodes))
        return ComponentsView(labelled, tuple(chain.from_iterable(answers)))

    async def etcd_cluster(self, query: EtcdCluster) -> EtcdView:
        """Resolve `EtcdCluster`.

        Raises:
            EtcdUnreachableError: no member can be connected to.
            EtcdError: the member does not respond, or knows no leader.
        """
        async with self._etcd.first_of(query.cluster, query.nodes) as (etcd, status):
            members = await etcd.members()
            if all(member.id != status.leader_id for member in members):
                raise EtcdError("there is no leader")
            return EtcdView(members, status.leader_id, await etcd.alarms())

    async def kubeadm_config(self, query: KubeadmConfigMap) -> str | None:
        """Resolve `KubeadmConfigMap`."""
        api = await self._workloads.api(query.cluster)
        config = await _get(api, CONFIG_MAPS, KUBEADM_CONFIG)
        return None if config is None else str((config.get("data") or {}).get(CLUSTER_CONFIGURATION, ""))

    async def addons(self, query: Addons) -> AddonsView:
        """Resolve `Addons`."""
        api = await self._workloads.api(query.cluster)
        proxy, dns = await _get(api, DAEMON_SETS, KUBE_PROXY), await _get(api, DEPLOYMENTS, COREDNS)
        config = await _get(api, CONFIG_MAPS, COREDNS)
        corefile = ((config or {}).get("data") or {}).get(COREFILE, "")
        return AddonsView(image_of(proxy, KUBE_PROXY), image_of(dns, COREDNS), corefile)

    async def serving_certificate(self, query: ServingCertificate) -> datetime:
        """Resolve `ServingCertificate`.

        Raises:
            NotConnected: there is no connection.
            PeerCertificateError: the API server's certificate cannot be read.
        """
        link, pod = self._workloads.link(query.cluster), f"{API_SERVER}-{query.node}"
        if not isinstance(link, Forwards):
            raise PeerCertificateError("the connection to the cluster cannot forward ports of Pods")
        async with link.forward(KUBE_SYSTEM, pod, query.port) as tunnel:
            certificate = await peer_certificate(tunnel)
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if [name.value for name in names] != [API_SERVER]:
            raise PeerCertificateError(f"the certificate of Pod {KUBE_SYSTEM}/{pod} was not created by kubeadm")
        return certificate.not_valid_after_utc

    async def kubeconfig_end(self, query: KubeconfigEnd) -> datetime | None:
        """Resolve `KubeconfigEnd`.

        Raises:
            KubeconfigError: the kubeconfig is not valid.
        """
        content = await read_kubeconfig(self._api, query.cluster.key)
        return None if content is None else client_certificate_ends(content)


async def read_kubeconfig(api: Api, cluster: Key) -> bytes | None:
    """Read the kubeconfig of a cluster; None if it does not exist."""
    secret = await read_secret(api, cluster, Purpose.KUBECONFIG)
    return None if secret is None else value_of(secret, VALUE)


async def read_secret(api: Api, cluster: Key, purpose: Purpose) -> Secret | None:
    """Read a Secret of a cluster with its contents; None if it does not exist."""
    try:
        return SECRET.decode(await api.get(SECRET.collection, cluster[0], secret_name(cluster[1], purpose)))
    except NotFound:
        return None


def image_of(workload: dict[str, Any] | None, container: str) -> str:
    """Return the image of a container of a DaemonSet or Deployment; empty if it does not exist."""
    spec = (workload or {}).get("spec", {}).get("template", {}).get("spec", {})
    return next((str(c.get("image", "")) for c in spec.get("containers") or [] if c.get("name") == container), "")


async def _get(api: Api, where: Collection, name: str) -> dict[str, Any] | None:
    try:
        obj: dict[str, Any] = msgspec.json.decode(await api.get(where, KUBE_SYSTEM, name))
    except NotFound:
        return None
    return obj


class _Named(msgspec.Struct):
    metadata: dict[str, Any] = {}


async def _labelled(api: Api) -> tuple[str, ...]:
    page = await api.list(NODES, options=ListOptions(selector=Selector(labels=f"{LABEL_CONTROL_PLANE_NODE}=")))
    return tuple(sorted(msgspec.json.decode(item, type=_Named).metadata["name"] for item in page.items))


class _State(msgspec.Struct, rename="camel"):
    waiting: dict[str, Any] | None = None
    terminated: dict[str, Any] | None = None


class _Container(msgspec.Struct, rename="camel"):
    state: _State = msgspec.field(default_factory=_State)
    last_state: _State = msgspec.field(default_factory=_State)


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    conditions: list[_Condition] = []
    container_statuses: list[_Container] = []


class _Pod(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


async def _pods(api: Api, node: str, components: Sequence[str]) -> list[PodAnswer]:
    return [await _pod(api, node, component) for component in components]


async def _pod(api: Api, node: str, component: str) -> PodAnswer:
    try:
        body = await api.get(PODS, KUBE_SYSTEM, f"{component}-{node}")
        status = msgspec.json.decode(body, type=_Pod).status
    except NotFound:
        return PodAnswer(node, component)
    except (ApiError, msgspec.DecodeError) as error:
        return PodAnswer(node, component, error=str(error))
    containers = tuple(
        ContainerView(
            waiting=str((container.state.waiting or {}).get("reason", "")),
            terminated=str((container.state.terminated or {}).get("reason", "")),
            last_exit_code=int((container.last_state.terminated or {}).get("exitCode", 0)),
        )
        for container in status.container_statuses
    )
    conditions = tuple((condition.type, condition.status) for condition in status.conditions)
    return PodAnswer(node, component, PodView(status.phase, conditions, containers))


class PeerCertificateError(IronbellError):
    """The other side presents no certificate."""

    reason = "NoCertificateShown"


async def peer_certificate(tunnel: Tunnel) -> x509.Certificate:
    """Return the certificate that the server at the other end presents, for inspection only. Cancellation point.

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
