"""A control plane that is stored as initialized: what speaks against it, and what says nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from ironbell.api.controlplane.kubeadmcontrolplane import (
    KUBEADM_CONTROL_PLANE,
    KubeadmControlPlane,
    KubeadmControlPlaneInitializationStatus,
)
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.contract.clusters.secrets import Purpose
from ironbell.controllers.kubeadm.controlplane.initialization import is_unfounded
from ironbell.controllers.kubeadm.controlplane.observed import Facts, Observed
from ironbell.kube.decision import Fact
from ironbell.workload.queries import ConnectionState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BODY = b'{"metadata": {"namespace": "ns", "name": "c"}}'
SECRET = SECRET_METADATA.decode(BODY)
NOT_TRIED = ConnectionState(connected=False)
REFUSED = ConnectionState(connected=False, consecutive_failures=1, error="connection refused")
LOST = ConnectionState(connected=False, last_probe_success=NOW, consecutive_failures=9)


def stored() -> KubeadmControlPlane:
    kcp = KUBEADM_CONTROL_PLANE.decode(BODY)
    initialization = KubeadmControlPlaneInitializationStatus(control_plane_initialized=True)
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, initialization=initialization))


@pytest.mark.parametrize(
    ("state", "has_kubeconfig", "unfounded"),
    [
        (REFUSED, True, True),
        (NOT_TRIED, False, True),
        (NOT_TRIED, True, False),
        (LOST, True, False),
        (ConnectionState(connected=True), True, False),
        (None, True, False),
    ],
    ids=["does not answer", "nobody can ask", "not asked yet", "answered once", "connected", "unknown"],
)
def test_what_nobody_has_asked_yet_speaks_against_nothing(
    state: ConnectionState | None, has_kubeconfig: bool, unfounded: bool
) -> None:
    """A process that has just started has not tried to connect: an initialized control plane stays one."""
    connection = None if state is None else Fact(state, NOW)
    secrets = {Purpose.KUBECONFIG: SECRET} if has_kubeconfig else {}
    assert is_unfounded(Observed(stored(), secrets=secrets, facts=Facts(connection=connection))) is unfounded
