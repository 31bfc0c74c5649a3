"""kubectl against a running embedded API."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.api.cluster import Cluster
from support.api.widgets import WIDGETS
from support.programs.kubectl import Kubectl


@pytest.fixture
def kubectl(kubectl_binary: Path, cluster: Cluster, tmp_path: Path) -> Kubectl:
    """kubectl as administrator of the running server."""
    kubeconfig = cluster.running.kubeconfig
    assert kubeconfig is not None
    home = tmp_path / "home"
    home.mkdir()
    return Kubectl(kubectl_binary, kubeconfig, home)


@pytest.fixture
async def widgets(kubectl: Kubectl) -> Kubectl:
    """kubectl, with the custom resource installed."""
    await kubectl.ok("apply", "-f", "-", stdin=WIDGETS)
    return kubectl
