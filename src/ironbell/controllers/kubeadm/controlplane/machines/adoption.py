"""Adoption of control plane Machines that the control plane does not control yet, or its rejection. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (adoptMachines).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.bootstrap.kubeadmconfig import KUBEADM_CONFIG
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.controlplane.kubeadmcontrolplane import KUBEADM_CONTROL_PLANE, KubeadmControlPlane
from ironbell.contract.clusters.versions import find_version
from ironbell.contract.owners import controller_of, owner_reference, owners_patch, with_owner
from ironbell.controllers.kubeadm.controlplane.observed import Observed
from ironbell.kube.draft import Draft

_FAILED: Final = "AdoptionFailed"


def reconcile(draft: Draft[KubeadmControlPlane], observed: Observed) -> None:
    """Adopt the control plane Machines without a controller; wait while some have another controller."""
    controlled = [machine for machine in observed.strays if controller_of(machine) is not None]
    if controlled:
        names = ", ".join(machine.metadata.name for machine in controlled)
        message = f"Control plane Machines {names} have another controller. Waiting until they are deleted."
        draft.wait("MixedManagement", message)
        return
    for machine in observed.strays:
        if problem := _problem(draft.obj, machine):
            draft.emit(_FAILED, problem, warning=True)
            draft.wait(_FAILED, problem)
            return
    owner = owner_reference(KUBEADM_CONTROL_PLANE, draft.obj, controller=True)
    for machine in observed.strays:
        draft.owned.append(owners_patch(MACHINE, machine, with_owner(machine.metadata.owner_references, owner)))


def _problem(kcp: KubeadmControlPlane, machine: Machine) -> str:
    """Return the reason why a Machine cannot be adopted; empty if it can."""
    name = f"{machine.metadata.namespace}/{machine.metadata.name}"
    if machine.spec.bootstrap.config_ref.kind != KUBEADM_CONFIG.kind:
        return f"Could not adopt Machine {name}: its spec.bootstrap.configRef is not a KubeadmConfig"
    current, desired = find_version(machine.spec.version), find_version(kcp.spec.version)
    if current is None or desired is None:
        return ""
    if current.major != desired.major or abs(current.minor - desired.minor) > 1:
        return (
            f'Could not adopt Machine {name}: its version ("{machine.spec.version}") is outside supported +/- one '
            f'minor version skew from KCP\'s ("{kcp.spec.version}")'
        )
    return ""
