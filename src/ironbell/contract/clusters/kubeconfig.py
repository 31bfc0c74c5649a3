"""The administrator's kubeconfig of a workload cluster: creation, reading, and the time of its rotation.

Source: kubernetes-sigs/cluster-api: util/kubeconfig/kubeconfig.go, util/certs/consts.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from ironbell.base.errors import IronbellError, Retry
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.pki import KeyAlgorithm, KeyPair, PkiError, Subject
from ironbell.kube.decision import Fields

ADMINISTRATOR: Final = Subject("kubernetes-admin", ("system:masters",))
ROTATE_BEFORE: Final = pki.CLIENT_LIFETIME / 2


class KubeconfigError(IronbellError):
    """A kubeconfig cannot be read. Its content is never part of the message."""

    reason, retry = "KubeconfigUnusable", Retry.NEVER


def create_kubeconfig(cluster: str, server: str, authority: KeyPair, algorithm: KeyAlgorithm, now: datetime) -> bytes:
    """Create a kubeconfig with a new key and certificate, valid for a year. Blocks while the key is generated.

    Args:
        cluster: the Cluster's name.
        server: such as `https://192.0.2.10:6443`.
        authority: the cluster's authority with its key.

    Raises:
        PkiError: the authority cannot be used.
    """
    client = pki.create_signed_pair(authority, ADMINISTRATOR, algorithm, now)
    trusted = pki.first_certificate(authority.certificate)
    user = f"{cluster}-admin"
    context = f"{user}@{cluster}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"certificate-authority-data": _base64(trusted), "server": server}}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
    }
    return goyaml.dump(document, go_exact=True).encode()


def server_of(kubeconfig: bytes, cluster: str) -> str:
    """The server's address under which a kubeconfig knows a cluster.

    Raises:
        KubeconfigError: it cannot be read, or does not know the cluster.
    """
    for entry in _entries(_parsed(kubeconfig), "clusters"):
        inner = entry.get("cluster")
        if entry.get("name") == cluster and isinstance(inner, dict) and inner.get("server"):
            return str(inner["server"])
    raise KubeconfigError(f"the kubeconfig names no server of cluster {cluster!r}")


def client_certificate_ends(kubeconfig: bytes) -> datetime:
    """Return when the first of a kubeconfig's client certificates expires.

    Raises:
        KubeconfigError: it cannot be read, or holds none.
    """
    try:
        ends = [pki.expires_at(pem) for pem in _client_certificates(_parsed(kubeconfig))]
    except PkiError as error:
        raise KubeconfigError(f"the kubeconfig's client certificate is unusable: {error}") from None
    if not ends:
        raise KubeconfigError("the kubeconfig holds no client certificate")
    return min(ends)


def needs_rotation(kubeconfig: bytes, now: datetime) -> bool:
    """Return whether less than half of a client certificate's life is left.

    Raises:
        KubeconfigError: the kubeconfig cannot be read.
    """
    return client_certificate_ends(kubeconfig) - now < ROTATE_BEFORE


def _client_certificates(document: Fields) -> Iterator[bytes]:
    for entry in _entries(document, "users"):
        user = entry.get("user")
        data = user.get("client-certificate-data") if isinstance(user, dict) else None
        if data:
            try:
                yield base64.b64decode(str(data), validate=True)
            except binascii.Error:
                raise KubeconfigError("the kubeconfig's client-certificate-data is not valid base64") from None


def _entries(document: Fields, section: str) -> list[Fields]:
    entries = document.get(section)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _parsed(kubeconfig: bytes) -> dict[str, Any]:
    try:
        document = goyaml.load(kubeconfig.decode())
    except (goyaml.YamlError, UnicodeDecodeError):
        raise KubeconfigError("the kubeconfig is no YAML") from None
    if not isinstance(document, dict):
        raise KubeconfigError("the kubeconfig is not an object")
    return document


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
