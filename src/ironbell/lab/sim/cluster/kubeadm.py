"""kubeadm on a simulated host: `init` creates a cluster, `join` is accepted or not.

It checks what the real one does: the certificates, the token against the cluster's Secret, its expiry and usages, and
the hash of the cluster's authority.

Failure modes: `KubeadmError`, with the message of the real kubeadm.

Source: kubernetes/kubernetes: cmd/kubeadm/app/cmd/{init,join}.go, cmd/kubeadm/app/discovery/token/token.go,
cmd/kubeadm/app/phases/certs/certs.go, plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go.
"""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

import msgspec

from ironbell.api.client import AlreadyExists, Api, ApiError, NotFound
from ironbell.api.core.secret import SECRET, Secret
from ironbell.api.kind import Collection
from ironbell.base.clock import Clock, parse_rfc3339, rfc3339
from ironbell.base.errors import IronbellError, Retry
from ironbell.codec.durations import parse_duration
from ironbell.contract.pki import KeyPair, PkiError, certificate_hashes, usable
from ironbell.kube.decision import Fields
from ironbell.lab.sim.cluster import objects
from ironbell.lab.sim.cluster.bootstrap import Kubeadm
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.objects import NodeFacts
from ironbell.lab.sim.timing import Delays

JOIN_FOR = timedelta(minutes=5)
JOIN_EVERY_S = 5.0


class KubeadmError(IronbellError):
    """kubeadm ended with an error."""

    reason, retry = "BootstrapFailed", Retry.NEVER


async def init(cluster: SimCluster, run: Kubeadm, facts: NodeFacts, *, delays: Delays, clock: Clock) -> None:
    """Create the cluster, with this host as its first. Cancellation point.

    Raises:
        KubeadmError: it cannot be created.
    """
    if cluster.exists:
        raise KubeadmError(f"error execution phase preflight: {cluster.endpoint} answers already as another cluster")
    authority = KeyPair(run.pki("ca.crt"), run.pki("ca.key"))
    _require_certificates(run, authority)
    if lifetime := run.section("ClusterConfiguration").get("certificateValidityPeriod"):
        cluster.certificate_lifetime = timedelta(microseconds=parse_duration(str(lifetime)) / 1000)
    _set_authorities(cluster, run, authority)
    await asyncio.sleep(delays.etcd_s)
    _add_etcd(cluster, facts)
    await asyncio.sleep(delays.api_server_s)
    await cluster.start()
    cluster.run_api_server(facts.name)
    async with cluster.inside() as api:
        now = rfc3339(clock.now())
        await _register(api, facts, now)
        await _static_pods(api, cluster, facts, now)
        await _create_objects(api, cluster, run, facts)


async def join(cluster: SimCluster, run: Kubeadm, facts: NodeFacts, *, delays: Delays, clock: Clock) -> None:
    """Let this host join the cluster; tries for five minutes. Cancellation point.

    Raises:
        KubeadmError: it was not accepted.
    """
    until = clock.now() + JOIN_FOR
    while True:
        try:
            await _discover(cluster, run, clock)
            break
        except (KubeadmError, ApiError) as error:
            if clock.now() >= until:
                raise KubeadmError(
                    f"error execution phase preflight: couldn't validate the identity of the API Server: "
                    f"{error.message}"
                ) from error
        await asyncio.sleep(JOIN_EVERY_S)
    if run.is_control_plane:
        _require_certificates(run, KeyPair(run.pki("ca.crt"), run.pki("ca.key")), of=cluster)
    async with cluster.inside() as api:
        await _register(api, facts, rfc3339(clock.now()))
    if not run.is_control_plane:
        return
    await asyncio.sleep(delays.etcd_s)
    _add_etcd(cluster, facts)
    await asyncio.sleep(delays.api_server_s)
    cluster.run_api_server(facts.name)
    async with cluster.inside() as api:
        await _static_pods(api, cluster, facts, rfc3339(clock.now()))


async def rejoin(cluster: SimCluster, run: Kubeadm, facts: NodeFacts, *, delays: Delays, clock: Clock) -> None:
    """Make this host a node again, unchanged, after the simulation was restarted. The first host of the control plane
    restores the cluster, with the objects that kubeadm creates and nothing else. Cancellation point.

    Raises:
        KubeadmError: the cluster at this address is another one.
    """
    if run.is_control_plane:
        authority = KeyPair(run.pki("ca.crt"), run.pki("ca.key"))
        _require_certificates(run, authority, of=cluster)
        if not cluster.exists:
            _set_authorities(cluster, run, authority)
        if cluster.etcd.find(facts.name) is None:
            _add_etcd(cluster, facts)
        await asyncio.sleep(delays.etcd_s + delays.api_server_s)
        await cluster.start()
        cluster.run_api_server(facts.name)
    async with cluster.inside() as api:
        now = rfc3339(clock.now())
        await _register(api, facts, now)
        if run.is_control_plane:
            await _static_pods(api, cluster, facts, now)
            await _create_objects(api, cluster, run, facts)


def _set_authorities(cluster: SimCluster, run: Kubeadm, authority: KeyPair) -> None:
    cluster.etcd.external = bool(run.section("ClusterConfiguration", "etcd", "external"))
    cluster.authority = authority
    cluster.etcd_authority = KeyPair(run.pki("etcd/ca.crt"), run.pki("etcd/ca.key")) if run.pki("etcd/ca.key") else None


async def _create_objects(api: Api, cluster: SimCluster, run: Kubeadm, facts: NodeFacts) -> None:
    authority = cluster.authority.certificate if cluster.authority is not None else b""
    for where, body in objects.cluster_objects(run, facts, server=cluster.endpoint.server, authority=authority):
        await ensure(api, where, body)


async def ensure(api: Api, where: Collection, body: Fields) -> None:
    """Create an object unless there is one of its name."""
    namespace = body["metadata"].get("namespace", "")
    try:
        await api.create(where, namespace, msgspec.json.encode(body))
    except AlreadyExists:
        return


def _require_certificates(run: Kubeadm, authority: KeyPair, *, of: SimCluster | None = None) -> None:
    names = ["ca.crt", "ca.key", "sa.pub", "sa.key", "front-proxy-ca.crt", "front-proxy-ca.key"]
    external = run.section("ClusterConfiguration", "etcd", "external")
    names += [] if external or (of is not None and of.etcd.external) else ["etcd/ca.crt", "etcd/ca.key"]
    missing = [name for name in names if not run.pki(name)]
    if missing:
        raise KubeadmError(f"error execution phase certs: failure loading {missing[0]}: the file does not exist")
    try:
        usable(authority)
    except PkiError as error:
        raise KubeadmError(f"error execution phase certs/ca: {error.message}") from error
    if (
        of is not None
        and of.authority is not None
        and authority.certificate.strip() != of.authority.certificate.strip()
    ):
        raise KubeadmError("error execution phase control-plane-prepare/certs: ca.crt is not the cluster's")


async def _discover(cluster: SimCluster, run: Kubeadm, clock: Clock) -> None:
    """Find the cluster and verify its identity and the token.

    Raises:
        KubeadmError: it is another cluster, or does not know the token.
        ApiError: it does not answer.
    """
    token = run.section("JoinConfiguration", "discovery", "bootstrapToken")
    if not token:
        raise KubeadmError("discovery: bootstrapToken is not set; discovery by file is not simulated")
    if token.get("apiServerEndpoint") != str(cluster.endpoint):
        raise KubeadmError(f"discovery: {token.get('apiServerEndpoint')} does not answer")
    cluster.require()
    if cluster.authority is None:
        raise KubeadmError("discovery: the API server has no certificate")
    hashes = token.get("caCertHashes") or ()
    if not token.get("unsafeSkipCAVerification") and not set(hashes) & set(
        certificate_hashes(cluster.authority.certificate)
    ):
        raise KubeadmError("discovery: cluster CA found in cluster-info ConfigMap is not among caCertHashes")
    text = run.section("JoinConfiguration", "discovery").get("tlsBootstrapToken") or token.get("token") or ""
    await _require_token(cluster, str(text), clock)


async def _require_token(cluster: SimCluster, token: str, clock: Clock) -> None:
    number, _, secret_part = token.partition(".")
    async with cluster.inside() as api:
        try:
            body = await api.get(SECRET.collection, "kube-system", f"bootstrap-token-{number}")
        except NotFound:
            raise KubeadmError(f"discovery: there is no JWS signed with token ID {number!r}") from None
    secret = SECRET.decode(body)
    if _text(secret, "token-secret") != secret_part or _text(secret, "token-id") != number:
        raise KubeadmError(f"discovery: token {number!r} is not the cluster's")
    expires = _text(secret, "expiration")
    if expires and parse_rfc3339(expires) <= clock.now():
        raise KubeadmError(f"discovery: token {number!r} has expired")
    for usage in ("usage-bootstrap-authentication", "usage-bootstrap-signing"):
        if _text(secret, usage) != "true":
            raise KubeadmError(f"discovery: token {number!r} has no {usage}")


def _text(secret: Secret, name: str) -> str:
    return base64.b64decode(secret.data.get(name, "")).decode()


def _add_etcd(cluster: SimCluster, facts: NodeFacts) -> None:
    if cluster.etcd.external:
        return
    try:
        cluster.etcd.add(facts.name, facts.address)
    except IronbellError as error:
        raise KubeadmError(f"error execution phase etcd-join: {error.message}") from error
    cluster.changed()


async def _register(api: Api, facts: NodeFacts, now: str) -> None:
    """Register the node, as its kubelet does when it starts."""
    await ensure(api, objects.NODES, objects.node(facts, now))


async def _static_pods(api: Api, cluster: SimCluster, facts: NodeFacts, now: str) -> None:
    for pod in objects.static_pods(facts, now):
        if cluster.etcd.external and pod["metadata"]["labels"]["component"] == "etcd":
            continue
        await ensure(api, objects.PODS, pod)
        status = msgspec.json.encode(pod)
        await api.replace(objects.PODS, "kube-system", pod["metadata"]["name"], status, subresource="status")
