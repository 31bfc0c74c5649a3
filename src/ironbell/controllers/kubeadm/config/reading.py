"""Reads of performers from the management cluster: the current KubeadmConfig, and the contents of Secrets."""

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
    """A KubeadmConfig as struct, and its spec with all fields that a user may have set."""

    config: KubeadmConfig
    spec: Spec

    def __repr__(self) -> str:
        return f"Read({'/'.join(self.config.key)})"


async def read_config(api: Api, key: ConfigKey) -> Read:
    """Read the current KubeadmConfig.

    Raises:
        OutOfDate: it was deleted, or another one has its name.
        ApiError: the request failed.
    """
    try:
        body = await api.get(KUBEADM_CONFIG.collection, key.namespace, key.name)
    except NotFound as error:
        raise OutOfDate(error.message) from error
    config = KUBEADM_CONFIG.decode(body)
    if config.metadata.uid != key.uid:
        raise OutOfDate(f"KubeadmConfig {key.namespace}/{key.name} was deleted and created again")
    return Read(config, msgspec.json.decode(body).get("spec", {}))


async def find_secret(api: Api, key: Key) -> Secret | None:
    """Read a Secret with its contents; None if it does not exist."""
    return await Client(api).find(SECRET, *key)


async def read_pair(api: Api, cluster: Key, purpose: Purpose) -> KeyPair:
    """Read a key pair of a cluster.

    Raises:
        SecretUnusableError: its Secret does not exist, or holds no valid key pair.
    """
    key = (cluster[0], cluster_secret_name(cluster[1], purpose))
    secret = await find_secret(api, key)
    if secret is None:
        raise SecretUnusableError(f"Secret {'/'.join(key)} does not exist")
    return key_pair_of(secret)


async def read_pairs(api: Api, cluster: Key, places: Sequence[Place]) -> dict[Purpose, KeyPair]:
    """Read the key pairs that are installed on a control plane's machine.

    Raises:
        SecretUnusableError: a Secret does not exist, or holds no valid key pair.
    """
    return {place.purpose: await read_pair(api, cluster, place.purpose) for place in places}


async def read_referenced(api: Api, namespace: str, spec: Spec) -> Contents:
    """Read the contents of the Secrets that files and users refer to; missing Secrets are left out.

    Raises:
        FileError: a value is not valid base64.
    """
    contents = {}
    for name in sorted(secret_names(spec)):
        secret = await find_secret(api, (namespace, name))
        if secret is not None:
            contents[name] = decoded(secret.data, name)
    return contents


def encode(body: Fields) -> bytes:
    """Encode the body of a write to a workload cluster."""
    return msgspec.json.encode(body)


def check_pairs(cluster: Key, places: Sequence[Place], pairs: dict[Purpose, KeyPair]) -> None:
    """Check that key pairs are usable, which kubeadm would do only on the host. Takes milliseconds.

    Raises:
        SecretUnusableError: a key pair is not usable; the message names its Secret.
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
