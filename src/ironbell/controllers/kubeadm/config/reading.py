"""What performers read from the management cluster: the KubeadmConfig as it is now, and the contents of Secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG, KubeadmConfig
from ironbell.api.client import Api, NotFound
from ironbell.api.core.secret import SECRET, Secret
from ironbell.contract import pki
from ironbell.contract.clusters.secrets import Purpose, SecretUnusableError, key_pair_of
from ironbell.contract.clusters.secrets import secret_name as cluster_secret_name
from ironbell.contract.pki import KeyPair, PkiError
from ironbell.controllers.kubeadm.config.certificates import Place
from ironbell.controllers.kubeadm.config.effects import ConfigKey
from ironbell.controllers.kubeadm.config.rendering.files import Contents, decoded, secret_names
from ironbell.controllers.kubeadm.config.rendering.kubeadm import Spec
from ironbell.kube.client import Client
from ironbell.kube.decision import Fields, Key
from ironbell.kube.manager.act import OutOfDate


@dataclass(frozen=True, slots=True)
class Read:
    """A KubeadmConfig as struct, and its spec with every field that a user may have put there."""

    config: KubeadmConfig
    spec: Spec

    def __repr__(self) -> str:
        return f"Read({'/'.join(self.config.key)})"


async def read_config(api: Api, key: ConfigKey) -> Read:
    """The KubeadmConfig.

    Raises:
        OutOfDate: it is gone, or another one has its name.
        ApiError: the API does not answer.
    """
    try:
        body = await api.get(KUBEADM_CONFIG.collection, key.namespace, key.name)
    except NotFound as error:
        raise OutOfDate(error.message) from error
    config = KUBEADM_CONFIG.decode(body)
    if config.metadata.uid != key.uid:
        raise OutOfDate(f"KubeadmConfig {key.namespace}/{key.name} is another one than was observed")
    return Read(config, msgspec.json.decode(body).get("spec", {}))


async def find_secret(api: Api, key: Key) -> Secret | None:
    """A Secret with its contents; None if it is not there."""
    return await Client(api).find(SECRET, *key)


async def read_pair(api: Api, cluster: Key, purpose: Purpose) -> KeyPair:
    """A key pair of a cluster.

    Raises:
        SecretUnusableError: it is not there, or cannot be read.
    """
    key = (cluster[0], cluster_secret_name(cluster[1], purpose))
    secret = await find_secret(api, key)
    if secret is None:
        raise SecretUnusableError(f"Secret {'/'.join(key)} does not exist")
    return key_pair_of(secret)


async def read_pairs(api: Api, cluster: Key, places: Sequence[Place]) -> dict[Purpose, KeyPair]:
    """The key pairs that a control plane's machine carries.

    Raises:
        SecretUnusableError: one is not there, or cannot be read.
    """
    return {place.purpose: await read_pair(api, cluster, place.purpose) for place in places}


async def read_referenced(api: Api, namespace: str, spec: Spec) -> Contents:
    """What Secrets hold that files and users refer to; those that are not there are left out.

    Raises:
        FileError: a value is no base 64.
    """
    found = {}
    for name in sorted(secret_names(spec)):
        secret = await find_secret(api, (namespace, name))
        if secret is not None:
            found[name] = decoded(secret.data, name)
    return found


def encode(body: Fields) -> bytes:
    """The body of a write to a workload cluster."""
    return msgspec.json.encode(body)


def check_pairs(cluster: Key, places: Sequence[Place], pairs: dict[Purpose, KeyPair]) -> None:
    """Hold key pairs to being usable: kubeadm would find out on the host only. Takes milliseconds.

    Raises:
        SecretUnusableError: names the Secret that is not.
    """
    for place in places:
        pair = pairs[place.purpose]
        try:
            if place.purpose is Purpose.SERVICE_ACCOUNT:
                pki.check_service_account_keys(pair)
            elif pair.key or not place.is_external:
                pki.check_pair(pair)
            else:
                pki.certificates(pair.certificate)
        except PkiError as error:
            name = cluster_secret_name(cluster[1], place.purpose)
            raise SecretUnusableError(f"Secret {cluster[0]}/{name} is unusable: {error}") from None
