"""Performers of the KubeadmConfig controller's effects, and the resolvers of its queries.

Secrets are read here, when they are used, and are written only into Secrets. A failure becomes a condition that names
the field; if the condition exists already, the error is raised, and the effect is retried with backoff.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.client import AlreadyExists, Api, PatchType
from ironbell.api.cluster.cluster import CLUSTER
from ironbell.api.core.secret import SECRET
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.base.clock import Clock, rfc3339
from ironbell.base.randomness import Randomness
from ironbell.base.threads import SpareProcessors
from ironbell.contract import pki
from ironbell.contract.clusters.secrets import Purpose, SecretUnusableError, encoded, key_pair_secret, value_of
from ironbell.contract.owners import owner_reference
from ironbell.contract.pki import KeyPair, PkiError
from ironbell.controllers.kubeadm.config import reading, status, storing, tokens
from ironbell.controllers.kubeadm.config.certificates import places
from ironbell.controllers.kubeadm.config.effects import (
    CREATE_CERTIFICATES,
    DISCOVER,
    KEEP_TOKEN,
    RENDER,
    CreateCertificates,
    Discover,
    KeepToken,
    Render,
)
from ironbell.controllers.kubeadm.config.rendering.files import discovery_patch
from ironbell.controllers.kubeadm.config.rendering.userdata import Role
from ironbell.controllers.kubeadm.config.tokens import Lifetime, TokenOf, TokenState
from ironbell.kube.decision import Action, Create, Fields, create, patch
from ironbell.kube.manager.act import OutOfDate
from ironbell.kube.reconciler import Performers, Resolvers
from ironbell.workload.clusterkey import ClusterKey

Offload: TypeAlias = Callable[..., Awaitable[Any]]
"""Runs a long computation outside the event loop: `SpareProcessors.run`."""


@dataclass(frozen=True)
class Outside:
    """The connections and sources that performers and resolvers use."""

    api: Api
    """API of the management cluster, under the controller's identity."""
    workload: Callable[[ClusterKey], Awaitable[Api]]
    """Returns the API of a workload cluster; raises `NotConnected`."""
    clock: Clock
    randomness: Randomness
    lifetime: Lifetime = field(default_factory=Lifetime)
    offload: Offload = field(default_factory=lambda: SpareProcessors().run)


def performers(outside: Outside) -> Performers:
    """Return the performers of the controller's effects."""

    async def create_certificates(arguments: CreateCertificates) -> Sequence[Action]:
        return await _create_certificates(outside, arguments)

    async def discover(arguments: Discover) -> Sequence[Action]:
        return await _discover(outside, arguments)

    async def keep_token(arguments: KeepToken) -> Sequence[Action]:
        await _keep_token(outside, arguments)
        return ()

    async def render(arguments: Render) -> Sequence[Action]:
        return await _render(outside, arguments)

    return {CREATE_CERTIFICATES: create_certificates, DISCOVER: discover, KEEP_TOKEN: keep_token, RENDER: render}


def resolvers(outside: Outside) -> Resolvers:
    """Return the resolver of queries about tokens."""

    async def token_of(query: TokenOf) -> TokenState:
        api = await outside.workload(query.cluster)
        secret = await reading.find_secret(api, (tokens.NAMESPACE, tokens.secret_name(query.token_id)))
        if secret is None:
            return TokenState(exists=False)
        return tokens.state_of({tokens.EXPIRATION: value_of(secret, tokens.EXPIRATION) or b""})

    return {TokenOf: token_of}


async def _create_certificates(outside: Outside, arguments: CreateCertificates) -> Sequence[Action]:
    read = await reading.read_config(outside.api, arguments.config)
    try:
        algorithm = pki.algorithm_of(arguments.algorithm)
    except PkiError as error:
        finding = status.certificates_missing(error.message, creates_certificates=True)
        return storing.rejected(read.config, finding, error, outside.clock.now())
    now = outside.clock.now()

    def generate(purpose: Purpose) -> KeyPair:
        if purpose is Purpose.SERVICE_ACCOUNT:
            return pki.create_service_account_keys(algorithm)
        return pki.create_authority(algorithm, now, days=arguments.days)

    pairs = [(purpose, await outside.offload(generate, purpose)) for purpose in arguments.purposes]
    return [_certificate_secret(read.config, arguments.cluster, purpose, pair) for purpose, pair in pairs]


def _certificate_secret(config: KubeadmConfig, cluster: ClusterKey, purpose: Purpose, pair: KeyPair) -> Create:
    """Return the Secret of a pair. The Cluster owns it as well: upstream's is deleted with the first machine."""
    body = key_pair_secret(cluster.key, purpose, pair, owner_reference(KUBEADM_CONFIG, config, controller=True))
    also = OwnerReference(api_version=CLUSTER.api_version, kind=CLUSTER.kind, name=cluster.name, uid=cluster.uid)
    body["metadata"]["ownerReferences"].append(to_builtin(also))
    return create(SECRET, body)


async def _discover(outside: Outside, arguments: Discover) -> Sequence[Action]:
    read = await reading.read_config(outside.api, arguments.config)
    held = read.config.spec.join_configuration.discovery.bootstrap_token.token
    token = tokens.new_token(outside.randomness) if arguments.new_token or not held else held
    try:
        authority = await reading.read_pair(outside.api, arguments.cluster.key, Purpose.CLUSTER_CA)
        change = discovery_patch(read.spec, arguments.role, arguments.endpoint, authority.certificate, token)
    except (SecretUnusableError, PkiError) as error:
        finding = status.certificates_missing(error.message, creates_certificates=False)
        return storing.rejected(read.config, finding, error, outside.clock.now())
    return [patch(KUBEADM_CONFIG, read.config, change, locked=True)] if change else []


async def _keep_token(outside: Outside, arguments: KeepToken) -> None:
    """Create the token's Secret, or extend it. This may be repeated."""
    read = await reading.read_config(outside.api, arguments.config)
    token = read.config.spec.join_configuration.discovery.bootstrap_token.token
    now = outside.clock.now()
    desired = tokens.token_secret(token, now + outside.lifetime.ttl)
    api = await outside.workload(arguments.cluster)
    name = desired["metadata"]["name"]
    if arguments.is_new:
        with contextlib.suppress(AlreadyExists):
            await api.create(SECRET.collection, tokens.NAMESPACE, reading.encode(desired))
            return
    existing = await reading.find_secret(api, (tokens.NAMESPACE, name))
    if existing is None:
        try:
            await api.create(SECRET.collection, tokens.NAMESPACE, reading.encode(desired))
        except AlreadyExists as error:
            raise OutOfDate(error.message) from error
        return
    data = {key: value_of(existing, key) or b"" for key in (tokens.TOKEN_SECRET, tokens.EXPIRATION)}
    tokens.check_secret(token, data)
    if outside.lifetime.is_short(tokens.state_of(data), now):
        more: Fields = {"data": encoded({tokens.EXPIRATION: rfc3339(now + outside.lifetime.ttl).encode()})}
        body = reading.encode(more)
        await api.patch(SECRET.collection, tokens.NAMESPACE, name, body, patch_type=PatchType.MERGE)


async def _render(outside: Outside, arguments: Render) -> Sequence[Action]:
    read = await reading.read_config(outside.api, arguments.config)
    config = read.config
    if config.status.initialization.data_secret_created and not arguments.again:
        raise OutOfDate("the data were created meanwhile")
    pairs: dict[Purpose, KeyPair] = {}
    if arguments.role is not Role.WORKER:
        installed = places(read.spec.get("clusterConfiguration", {}))
        try:
            pairs = await reading.read_pairs(outside.api, arguments.cluster.key, installed)
            await outside.offload(reading.check_pairs, arguments.cluster.key, installed, pairs)
        except SecretUnusableError as error:
            finding = status.certificates_missing(error.message, creates_certificates=arguments.role is Role.INIT)
            return storing.rejected(config, finding, error, outside.clock.now())
    try:
        contents = await reading.read_referenced(outside.api, config.metadata.namespace, read.spec)
        data: str = await outside.offload(storing.rendered, read, arguments, pairs, contents)
        existing = await reading.find_secret(outside.api, config.key)
        return storing.stored(read, arguments, data, existing, outside.clock.now())
    except storing.UNUSABLE as error:
        return storing.rejected(config, status.not_generated(error.message), error, outside.clock.now())
