"""Secrets of a cluster: names and keys as upstream has them, and the kubeconfig in one of them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest

from ironbell.api.core.secret import Secret
from ironbell.api.meta import ObjectMeta, OwnerReference
from ironbell.codec import goyaml
from ironbell.contract import pki
from ironbell.contract.clusters import kubeconfig as cluster_kubeconfig
from ironbell.contract.clusters import secrets as cluster_secrets
from ironbell.contract.clusters.kubeconfig import KubeconfigError
from ironbell.contract.clusters.secrets import Purpose, SecretUnusableError
from ironbell.contract.pki import KeyAlgorithm, KeyPair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = OwnerReference(
    api_version="controlplane.cluster.x-k8s.io/v1beta2",
    kind="KubeadmControlPlane",
    name="one",
    uid="u",
    controller=True,
)
AUTHORITY = pki.create_authority(KeyAlgorithm.ECDSA_P256, NOW)


def made(days: int = 0) -> bytes:
    moment = NOW + timedelta(days=days)
    return cluster_kubeconfig.create_kubeconfig(
        "one", "https://192.0.2.10:6443", AUTHORITY, KeyAlgorithm.ECDSA_P256, moment
    )


@pytest.mark.parametrize(
    ("purpose", "name"),
    [
        (Purpose.KUBECONFIG, "one-kubeconfig"),
        (Purpose.CLUSTER_CA, "one-ca"),
        (Purpose.ETCD_CA, "one-etcd"),
        (Purpose.SERVICE_ACCOUNT, "one-sa"),
        (Purpose.FRONT_PROXY_CA, "one-proxy"),
        (Purpose.API_SERVER_ETCD_CLIENT, "one-apiserver-etcd-client"),
    ],
)
def test_names(purpose: Purpose, name: str) -> None:
    assert cluster_secrets.secret_name("one", purpose) == name
    assert cluster_secrets.parse_secret_name(name) == ("one", purpose)


def test_other_names_are_none() -> None:
    assert cluster_secrets.parse_secret_name("one") is None
    assert cluster_secrets.parse_secret_name("ca") is None


def test_a_secret_of_a_key_pair() -> None:
    body = cluster_secrets.key_pair_secret(("site", "one"), Purpose.CLUSTER_CA, KeyPair(b"crt", b"key"), OWNER)
    assert body == {
        "metadata": {
            "namespace": "site",
            "name": "one-ca",
            "labels": {"cluster.x-k8s.io/cluster-name": "one"},
            "ownerReferences": [
                {
                    "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
                    "kind": "KubeadmControlPlane",
                    "name": "one",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "type": "cluster.x-k8s.io/secret",
        "data": {"tls.key": "a2V5", "tls.crt": "Y3J0"},
    }


def secret(data: dict[str, str], type: str = cluster_secrets.SECRET_TYPE) -> Secret:  # noqa: A002
    return Secret(metadata=ObjectMeta(namespace="site", name="one-etcd"), type=type, data=data)


def test_the_key_of_an_external_authority_may_be_missing() -> None:
    assert cluster_secrets.key_pair_of(secret({"tls.crt": "Y3J0"})) == KeyPair(b"crt", b"")


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(SecretUnusableError, match=r"Secret site/one-etcd has no data.tls.crt"):
        cluster_secrets.key_pair_of(secret({"tls.key": "a2V5"}))
    with pytest.raises(SecretUnusableError, match=r"Secret site/one-etcd: data.tls.key is not valid base64"):
        cluster_secrets.key_pair_of(secret({"tls.crt": "Y3J0", "tls.key": "?"}))


def test_a_kubeconfig_is_what_clients_expect() -> None:
    document = goyaml.load(made().decode())
    user = document["users"][0]["user"]
    certificate = base64.b64decode(user["client-certificate-data"])
    assert pki.certificates(certificate)[0].subject.rfc4514_string() == "CN=kubernetes-admin,O=system:masters"
    pki.check_pair(KeyPair(certificate, base64.b64decode(user["client-key-data"])))
    document["users"][0]["user"] = {}
    assert document == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "one",
                "cluster": {
                    "server": "https://192.0.2.10:6443",
                    "certificate-authority-data": base64.b64encode(AUTHORITY.certificate).decode(),
                },
            }
        ],
        "contexts": [{"name": "one-admin@one", "context": {"cluster": "one", "user": "one-admin"}}],
        "current-context": "one-admin@one",
        "users": [{"name": "one-admin", "user": {}}],
    }


def test_a_kubeconfig_is_rotated_when_half_its_life_is_over() -> None:
    kubeconfig = made()
    assert cluster_kubeconfig.client_certificate_ends(kubeconfig) == NOW + timedelta(hours=8760)
    assert not cluster_kubeconfig.needs_rotation(kubeconfig, NOW + timedelta(hours=4380))
    assert cluster_kubeconfig.needs_rotation(kubeconfig, NOW + timedelta(hours=4380, seconds=1))


def test_a_rotated_kubeconfig_keeps_its_server() -> None:
    assert cluster_kubeconfig.server_of(made(), "one") == "https://192.0.2.10:6443"
    with pytest.raises(KubeconfigError, match="names no server of cluster 'two'"):
        cluster_kubeconfig.server_of(made(), "two")


@pytest.mark.parametrize(
    ("kubeconfig", "message"),
    [
        (b"\xff", "is no YAML"),
        (b"[]", "is not an object"),
        (b"{}", "holds no client certificate"),
        (b"users: [{name: a, user: {client-certificate-data: '?'}}]", "is not valid base64"),
        (b"users: [{name: a, user: {client-certificate-data: AAAA}}]", "client certificate is unusable"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_refused(kubeconfig: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        cluster_kubeconfig.needs_rotation(kubeconfig, NOW)
