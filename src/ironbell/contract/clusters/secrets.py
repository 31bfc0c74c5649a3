"""The Secrets that a cluster's systems share: names, type, labels, keys, and what is read out of them.

A Secret is `<cluster>-<purpose>` in the Cluster's namespace. Those we make are of type `cluster.x-k8s.io/secret`, carry
the Cluster's name as a label and an owner that takes them along. Users may make any of them beforehand (their own
authority); one of another type counts as the user's and is never owned.

Source: kubernetes-sigs/cluster-api: util/secret/{consts,secret,certificates}.go, util/kubeconfig/kubeconfig.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from ironbell.api.cluster.names import LABEL_CLUSTER_NAME
from ironbell.api.core.secret import Secret
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.base.errors import IronbellError, Retry
from ironbell.contract.pki import KeyPair
from ironbell.kube.decision import Fields, Key

SECRET_TYPE: Final = "cluster.x-k8s.io/secret"  # noqa: S105 - a type, no secret
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
VALUE: Final = "value"
"""The key of a kubeconfig, and of user data."""
FORMAT: Final = "format"
"""Key of the format of user data."""


class Purpose(StrEnum):
    """Purpose of a Secret of a cluster; the suffix of its name."""

    KUBECONFIG = "kubeconfig"
    CLUSTER_CA = "ca"
    ETCD_CA = "etcd"
    SERVICE_ACCOUNT = "sa"
    FRONT_PROXY_CA = "proxy"
    API_SERVER_ETCD_CLIENT = "apiserver-etcd-client"
    """Supplied by the user where etcd is external."""


class SecretUnusableError(IronbellError):
    """A Secret of a cluster does not hold what its name says. The message names Secret and key, never a value."""

    reason, retry = "SecretUnusable", Retry.NEVER


def secret_name(cluster: str, purpose: Purpose) -> str:
    """The name of the Secret of a cluster."""
    return f"{cluster}-{purpose}"


def parse_secret_name(name: str) -> tuple[str, Purpose] | None:
    """Cluster and purpose of a Secret's name; None if it is no such name."""
    for purpose in Purpose:
        if name.endswith(f"-{purpose}"):
            return name.removesuffix(f"-{purpose}"), purpose
    return None


def value_of(secret: Secret, key: str) -> bytes | None:
    """A value in plain; None if the Secret has none under this key.

    Raises:
        SecretUnusableError: the value is not valid base64.
    """
    text = secret.data.get(key)
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise SecretUnusableError(f"Secret {'/'.join(secret.key)}: data.{key} is not valid base64") from None


def key_pair_of(secret: Secret) -> KeyPair:
    """Return certificate and key of a Secret, unparsed; the key may be missing (an external etcd's authority).

    Raises:
        SecretUnusableError: there is no certificate, or a value cannot be read.
    """
    certificate = value_of(secret, CERTIFICATE)
    if not certificate:
        raise SecretUnusableError(f"Secret {'/'.join(secret.key)} has no data.{CERTIFICATE}; put the certificate there")
    return KeyPair(certificate, value_of(secret, KEY) or b"")


def key_pair_secret(cluster: Key, purpose: Purpose, pair: KeyPair, owner: OwnerReference) -> Fields:
    """The Secret of a pair that we made."""
    return cluster_secret(
        cluster, secret_name(cluster[1], purpose), {KEY: pair.key, CERTIFICATE: pair.certificate}, owner
    )


def kubeconfig_secret(cluster: Key, kubeconfig: bytes, owner: OwnerReference) -> Fields:
    """The Secret of a cluster's kubeconfig."""
    return cluster_secret(cluster, secret_name(cluster[1], Purpose.KUBECONFIG), {VALUE: kubeconfig}, owner)


def cluster_secret(cluster: Key, name: str, data: Mapping[str, bytes], owner: OwnerReference) -> Fields:
    """A Secret of our type beside a Cluster, in plain data for a write."""
    return {
        "metadata": {
            "namespace": cluster[0],
            "name": name,
            "labels": {LABEL_CLUSTER_NAME: cluster[1]},
            "ownerReferences": [to_builtin(owner)],
        },
        "type": SECRET_TYPE,
        "data": encoded(data),
    }


def encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """Values as a Secret's `data` holds them."""
    return {key: base64.b64encode(value).decode() for key, value in data.items()}
