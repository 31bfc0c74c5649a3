"""Who gets in, by which door."""

from __future__ import annotations

import stat
from pathlib import Path

from ironbell.apiserver.access.kubeconfig import Credentials, kubeconfig, write_kubeconfig
from support.api.cluster import Cluster
from support.programs.kubectl import Kubectl


async def as_user(cluster: Cluster, kubectl: Kubectl, tmp_path: Path, token: str) -> Kubectl:
    content = kubeconfig(
        server=cluster.running.url,
        authority_pem=cluster.running.authority.certificate_pem,
        user="other",
        credentials=Credentials(token=token),
        name="other",
    )
    return Kubectl(kubectl.binary, write_kubeconfig(tmp_path / "other", content), kubectl.home)


async def test_a_token_gets_in_and_stays_good_over_a_restart(
    cluster: Cluster, kubectl: Kubectl, tmp_path: Path
) -> None:
    other = await as_user(cluster, kubectl, tmp_path, cluster.running.tokens.issue("operator", ["system:masters"]))
    assert "default" in await other.ok("get", "namespaces")
    await cluster.restart()
    assert "operator" in await other.ok("auth", "whoami")


async def test_an_unknown_token_does_not(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    other = await as_user(cluster, kubectl, tmp_path, "guess")
    assert "Unauthorized" in await other.fails("get", "--raw", "/api")


async def test_somebody_without_a_role_is_refused_by_name(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    other = await as_user(cluster, kubectl, tmp_path, cluster.running.tokens.issue("guest"))
    refused = await other.fails("get", "secrets")
    assert 'User "guest" cannot list resource "secrets"' in refused
    assert 'cannot get path "/metrics"' in await other.fails("get", "--raw", "/metrics")
    assert (await other.run("auth", "can-i", "get", "secrets")).out == "no\n"


async def test_another_identity_by_certificate(cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> None:
    path = cluster.running.write_kubeconfig(tmp_path / "viewer", user="viewer", groups=["readers"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    viewer = Kubectl(kubectl.binary, path, kubectl.home)
    seen = await viewer.ok("auth", "whoami")
    assert "viewer" in seen
    assert "readers" in seen


async def test_the_kubeconfig_is_private(cluster: Cluster) -> None:
    kubeconfig_path = cluster.running.kubeconfig
    assert kubeconfig_path is not None
    assert stat.S_IMODE(kubeconfig_path.stat().st_mode) == 0o600
