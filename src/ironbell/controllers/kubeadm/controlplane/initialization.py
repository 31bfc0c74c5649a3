"""Whether a control plane was initialized: stored once, and derived again where the stored value cannot be true. Pure.

`status.initialization.controlPlaneInitialized` is kept when its cluster stops answering. It is not believed if nothing
bears it out: no Machine ever became a Node, and the cluster has never answered, though it was asked. Everything else
goes by this value, so a control plane that wrongly has it would wait forever for certificates and for a machine to join
that is to be the first.
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
    " answered; it is false until the cluster answers"
)


def has_kubeadm_config(observed: Observed) -> bool:
    """Whether the workload cluster has the ConfigMap that `kubeadm init` leaves."""
    fact = observed.facts.kubeadm_config
    return fact is not None and fact.value is not None


def is_unfounded(observed: Observed) -> bool:
    """Whether the control plane is stored as initialized and cannot be."""
    if not observed.kcp.status.initialization.control_plane_initialized or has_kubeadm_config(observed):
        return False
    state = observed.facts.connection.value if observed.facts.connection is not None else None
    if state is None or state.connected or state.last_probe_success is not None:
        return False
    if Purpose.KUBECONFIG in observed.secrets and not state.consecutive_failures:
        # This process has just started: nobody has tried yet.
        return False
    return not any(has_node(machine) for machine in observed.machines)


def not_initialized(kcp: KubeadmControlPlane) -> KubeadmControlPlane:
    """The control plane as one that is still to be initialized."""
    initialization = KubeadmControlPlaneInitializationStatus(control_plane_initialized=False)
    return msgspec.structs.replace(kcp, status=msgspec.structs.replace(kcp.status, initialization=initialization))


def report_repair(draft: Draft[KubeadmControlPlane]) -> None:
    """Emit the event that the stored value is not believed."""
    draft.emit("InitializationRepaired", _MESSAGE, warning=True)
