"""Output of machines: what of it may be shown."""

from __future__ import annotations

import time

import pytest

from ironbell.contract.redaction import HIDDEN, READ, last_lines, without_secrets

KEY = "5f" * 32


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("kubeadm join --token abcdef.0123456789abcdef host:6443", f"kubeadm join --token {HIDDEN} host:6443"),
        ("retry with abcdef.0123456789abcdef", f"retry with {HIDDEN}"),
        (f"--certificate-key {KEY}", f"--certificate-key {HIDDEN}"),
        (f"key {KEY} is wrong", f"key {HIDDEN} is wrong"),
        ("Authorization: Bearer abc.def-123456", f"Authorization: Bearer {HIDDEN}"),
        ("token: eyJhbGciOi.eyJpc3MiOi.c2lnbmF0dXJl end", f"token: {HIDDEN} end"),
        ("password=hunter2!x", f"password={HIDDEN}"),
        ('password: "correct horse, battery" end', f"password: {HIDDEN} end"),
        ("--registry-password 'correct horse' end", f"--registry-password {HIDDEN} end"),
        ("https://user:pass@registry.example/v2", f"https://{HIDDEN}@registry.example/v2"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nend", f"{HIDDEN}\nend"),
        ("-----BEGIN CERTIFICATE-----\nMIIE", HIDDEN),
        (f"client-certificate-data: {'LS0tLS1CRUdJTiB' * 4}==", f"client-certificate-data: {HIDDEN}"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "[ERROR FileAvailable--etc-kubernetes-manifests-etcd.yaml]: /etc/kubernetes/manifests/etcd.yaml already exists",
        'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"',
        f"failed to pull image registry.example/pause@sha256:{KEY}: connection refused",
        'Get "https://192.0.2.1:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": refused',
        "Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)",
        "the secret default/one does not exist",
    ],
)
def test_causes_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_only_the_last_lines_are_kept_and_only_what_can_be_printed() -> None:
    text = "one\r\n\x1b[31mtwo\x1b[0m\n\nthree\x00\nfour " + "x" * 50
    assert last_lines(text, lines=3, width=10) == ("two", "three", "four xxxx…")


@pytest.mark.parametrize("word", ["a-", "--", "--a", "eyJ-", "token-", "--token", "password ", "://a:"])
def test_no_word_takes_longer_than_its_length(word: str) -> None:
    """A report of 8 KiB took seconds, in which nobody else was answered."""
    began = time.process_time()
    without_secrets(word * (READ // len(word)))
    assert time.process_time() - began < 1
