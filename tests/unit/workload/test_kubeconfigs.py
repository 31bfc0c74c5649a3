"""Kubeconfigs that come out of Secrets."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.kube.transport.tokens import ConnectionConfigError
from ironbell.workload.kubeconfigs import http_link

CLUSTER = ("n", "one")


def kubeconfig(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "a@one",
            "clusters": [{"name": "one", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
            "users": [{"name": "a", "user": user or {"token": "t"}}],
            "contexts": [{"name": "a@one", "context": {"cluster": "one", "user": "a"}}],
        }
    )


async def test_one_that_holds_all_it_needs_is_a_link() -> None:
    link = http_link(CLUSTER, kubeconfig())
    await link.close()


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({}, {"exec": {"command": "/bin/true"}}, "n/one-kubeconfig: exec is not allowed"),
        ({}, {"auth-provider": {"name": "gcp"}}, "n/one-kubeconfig: auth-provider is not allowed"),
        ({}, {"tokenFile": "/etc/shadow"}, "tokenFile names a file"),
        ({}, {"client-certificate": "c", "client-key": "k"}, "client-certificate names a file"),
        ({"certificate-authority": "/etc/passwd"}, {}, "certificate-authority names a file"),
        ({"certificate-authority-data": "bm9uZQ=="}, {}, "certificate or key is unusable"),
        ({"server": ""}, {}, "has no server"),
    ],
)
def test_what_names_files_or_programs_is_refused(cluster: dict[str, Any], user: dict[str, Any], message: str) -> None:
    with pytest.raises(ConnectionConfigError, match=message):
        http_link(CLUSTER, kubeconfig(cluster, user))


@pytest.mark.parametrize("content", [b"\xff", b"a: [", b"- 1", b"{}"])
def test_what_is_no_kubeconfig_is_refused(content: bytes) -> None:
    with pytest.raises(ConnectionConfigError, match="n/one-kubeconfig"):
        http_link(CLUSTER, content)
