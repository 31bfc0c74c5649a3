"""Repair of the stored value that a control plane is initialized, if it cannot be true. Pure.

`status.initialization.controlPlaneInitialized` is kept when the cluster stops responding. It is reset if there is no
evidence for it: no Machine ever became a Node, and the cluster has never responded to a request. All other decisions
depend on this value: with a wrong one, the control plane would wait forever for certificates, and for a machine to join
that has to be the first.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ironbell.api.controlplane.kubeadmcontrolplane import (
    KubeadmControlPlane,
    KubeadmControlPlaneInitializationStatus,
)
from ironbell.contract.clusters.secrets import Purpose
from ironbell.controllers.kubeadm.controlplane.model import has_node
from ironbell.controllers.kubeadm.controlplane.observed import Observed
from ironbell.kube.draft import Draft

_MESSAGE: Final = (
    "status.initialization.controlPlaneInitialized is true, but no Machine has become a Node and the cluster has never"
    " responded. It is treated as false until the cluster responds."
)


def has_kubeadm_config(observed: Observed) -> bool:
    """Return whether the workload cluster has the ConfigMap that `kubeadm init` creates."""
    fact = observed.facts.kubeadm_config
    return fact is not None and fact.value is not None


def is_unfounded(observed: Observed) -> bool:
    """Return whether the control plane is recorded as initialized but cannot be."""
    if not observed.kcp.status.initialization.control_plane_initialized or has_kubeadm_config(observed):
        return False
    state = observed.facts.connection.value if observed.facts.connection is not None else None
    if state is None or state.connected or state.last_probe_success is not None:
        return False
    if Purpose.KUBECONFIG in observed.secrets and not state.consecutive_failures:
        # This process has just started, and no connection was attempted yet.
        return False
    return not any(has_node(machine) for machine in observed.machines)


def not_initialized(kcp: KubeadmControlPlane) -> KubeadmControlPlane:
    """Return the control plane with the value reset."""
    initialization = KubeadmControlPlaneInitializationStatus(control_plane_initialized=False)
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, initialization=initialization))


def report_repair(draft: Draft[KubeadmControlPlane]) -> None:
    """Emit the event that the recorded value was reset."""
    draft.emit("InitializationRepaired", _MESSAGE, warning=True)
