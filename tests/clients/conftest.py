"""Clients written for Kubernetes, each run against the embedded API and a real kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import pytest

SERVERS = ("embedded", "real")


@pytest.fixture(scope="session", params=SERVERS)
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of an administrator of either server."""
    cluster = request.getfixturevalue(f"{request.param}_cluster")
    path: Path = cluster.kubeconfig() if request.param == "real" else cluster.kubeconfig
    return path
