"""A whole site: static tokens, the audit log, and a noisy client beside a quiet one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.api.kubeapi import KubeApi, connect
from support.site.embeddedcluster import EmbeddedCluster
from support.waiting import eventually

CONNECTIONS = 200
QUIET_REQUESTS = 40
ADVANTAGE = 2
"""The quiet client's slowest answers come so many times faster than the noisy one's do on average."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("site")
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(
        'token-of-ann,ann,u1,"team-a,team-b"\ntoken-of-noisy,noisy,u2,system:masters\ntoken-of-busy,busy,u3,team-b\n'
    )
    cluster = EmbeddedCluster(folder, ("--token-auth-file", str(tokens), "--audit-log", str(folder / "audit.log")))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def admin(site: EmbeddedCluster) -> KubeApi:
    return connect("embedded", site.kubeconfig)


def audited(site: EmbeddedCluster, agent: str) -> list[dict[str, Any]]:
    """The lines of the audit log about one user agent."""
    lines = (site.folder / "audit.log").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["userAgent"] == agent]


def test_static_tokens(admin: KubeApi) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    info = admin.with_token("token-of-ann").post(path, body).json["status"]["userInfo"]
    assert info == {"username": "ann", "uid": "u1", "groups": ["team-a", "team-b", "system:authenticated"]}
    assert admin.with_token("token-of-nobody").post(path, body).status == 401


def test_requests_are_recorded_without_their_contents(site: EmbeddedCluster, admin: KubeApi) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "hunter2"}}
    asking = admin.with_headers(User_Agent="recorded", Impersonate_User="ben")
    asking.get("/api/v1/namespaces/default/secrets/s")
    admin.with_headers(User_Agent="recorded").made("/api/v1/namespaces/default/secrets", secret)
    admin.with_token("token-of-ann").with_headers(User_Agent="recorded").get("/api/v1/nodes?limit=1")
    read, made, listed = eventually(lambda: (found := audited(site, "recorded")) and len(found) == 3 and found)
    assert (read["verb"], read["responseStatus"]["code"]) == ("get", 403)
    assert read["user"]["username"] == "kubernetes-admin"
    assert read["impersonatedUser"]["username"] == "ben"
    assert read["objectRef"] == {"resource": "secrets", "namespace": "default", "name": "s", "apiVersion": "v1"}
    assert (made["verb"], made["responseStatus"]["code"], made["level"]) == ("create", 201, "Metadata")
    assert (listed["user"]["username"], listed["requestURI"]) == ("ann", "/api/v1/nodes?limit=1")
    written = (site.folder / "audit.log").read_text()
    assert "hunter2" not in written
    assert "token-of-ann" not in written


@pytest.fixture(params=["noisy", "busy"])
def noisy(request: pytest.FixtureRequest, admin: KubeApi, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A client that lists many objects over two hundred connections, again and again: an exempt one, and one whose
    level has seats."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "busy"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    admin.made(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {"metadata": {"name": f"busy-{request.param}"}, "roleRef": role, "subjects": [subject]},
    )
    for number in range(50):
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"a": "x" * 8000}}
        admin.post("/api/v1/namespaces/kube-public/configmaps", value)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(Path(admin.pool.connection_pool_kw["ca_certs"]).read_bytes())
    url = f"{admin.server}/api/v1/namespaces/kube-public/configmaps"
    token = f"token-of-{request.param}"
    command = [sys.executable, "-m", "support.api.noisyclient", url, str(authority), token, str(CONNECTIONS)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(["tests", os.environ.get("PYTHONPATH", "src")])}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_noisy_client_waits_behind_itself(noisy: subprocess.Popen[str], admin: KubeApi) -> None:
    taken: list[float] = []
    began = time.monotonic()
    while len(taken) < QUIET_REQUESTS:
        asked = time.monotonic()
        assert admin.get("/api/v1/namespaces/default").status == 200
        taken.append(time.monotonic() - asked)
    elapsed = time.monotonic() - began
    out, _ = noisy.communicate("", timeout=30)
    statuses = json.loads(out)
    assert set(statuses) == {"200"}
    noisy_mean = CONNECTIONS * elapsed / statuses["200"]
    p99 = sorted(taken)[len(taken) * 99 // 100]
    print(f"quiet: p99 {p99:.3f} s, mean {elapsed / len(taken):.3f} s; noisy: mean {noisy_mean:.3f} s, {statuses}")
    assert p99 * ADVANTAGE < noisy_mean
