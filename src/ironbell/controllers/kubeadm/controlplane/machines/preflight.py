"""Whether the control plane may be changed now, pure: one step at a time, and only from solid ground.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/preflight.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_REMEDIATION_IN_PROGRESS, ANNOTATION_UPGRADE_STEP
from ironbell.controllers.kubeadm.controlplane.machines.quorum import components_survive, etcd_forecast
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, condition, has_node
from ironbell.controllers.kubeadm.controlplane.names import ConditionType, MachineCondition, health_conditions
from ironbell.kube.conditions import is_true


@dataclass(frozen=True, slots=True)
class Preflight:
    """What stands in the way; nothing does when all is false and empty."""

    topology_version: str = ""
    """The version that the topology is about to hand over."""
    creation_stopped: str = ""
    """Why no Machine is created at all."""
    deleting_machine: bool = False
    certificates_missing: bool = False
    components_unhealthy: bool = False
    etcd_unhealthy: bool = False
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self == Preflight()

    @property
    def lines(self) -> list[str]:
        """What the conditions ScalingUp and ScalingDown say."""
        told = {
            f"* {self.creation_stopped}": self.creation_stopped,
            f"* waiting for a version upgrade to {self.topology_version} to be propagated": self.topology_version,
            "* waiting for a control plane Machine to complete deletion": self.deleting_machine,
            "* cluster certificates are missing or unknown": self.certificates_missing,
            "* waiting for control plane components to become healthy": self.components_unhealthy,
            "* waiting for etcd cluster to become healthy": self.etcd_unhealthy,
        }
        return [line for line, applies in told.items() if applies]

    @property
    def event(self) -> str:
        """What is told as an event, where something is unhealthy."""
        if not self.failures:
            return ""
        told = self.failures[0] if len(self.failures) == 1 else f"[{', '.join(self.failures)}]"
        return f"Waiting for control plane to pass preflight checks to continue reconciliation: {told}"


PASSED: Final = Preflight()


def pending_topology_version(cluster: Cluster, version: str) -> str:
    """The version that the Cluster's topology has not handed over yet; empty where there is none to wait for."""
    wanted = cluster.spec.topology.version
    step = cluster.metadata.annotations.get(ANNOTATION_UPGRADE_STEP, "")
    if not wanted or version in (wanted, step):
        return ""
    return step or wanted


def preflight(plane: ControlPlane, *, scales_up: bool, without: Machine | None = None) -> Preflight:
    """Hold a control plane to being fit for a Machine more, or for one less.

    Args:
        plane: with the conditions of its Machines as they are now.
        scales_up: whether a Machine is to come.
        without: the Machine that is to go; how it stands does not matter.
    """
    if not plane.machines:
        return PASSED
    if pending := pending_topology_version(plane.cluster, plane.kcp.spec.version):
        return Preflight(topology_version=pending)
    if scales_up and not is_true(plane.kcp.status.conditions, ConditionType.CERTIFICATES_AVAILABLE):
        return Preflight(certificates_missing=True)
    if plane.deleting_machines:
        return Preflight(deleting_machine=True)
    found = _stable(plane, without)
    if scales_up and not found.passed and ANNOTATION_REMEDIATION_IN_PROGRESS in plane.kcp.metadata.annotations:
        return _replaceable(plane)
    return found


def _stable(plane: ControlPlane, without: Machine | None) -> Preflight:
    components, etcd = False, False
    failures: list[str] = []
    for machine in plane.machines:
        if without is not None and machine.key == without.key:
            continue
        name = machine.metadata.name
        if not has_node(machine):
            failures.append(f"Machine {name} does not have a corresponding Node yet (Machine.status.nodeRef not set)")
            components, etcd = True, etcd or plane.etcd_managed
            continue
        for type_ in health_conditions(plane.etcd_managed):
            if failure := _failure(machine, type_):
                failures.append(failure)
                etcd = etcd or type_ == MachineCondition.ETCD_MEMBER
                components = components or type_ != MachineCondition.ETCD_MEMBER
    return Preflight(components_unhealthy=components, etcd_unhealthy=etcd, failures=tuple(failures))


def _failure(machine: Machine, type_: str) -> str:
    name, found = machine.metadata.name, condition(machine, type_)
    if found is None:
        return f"Machine {name} does not have {type_} condition"
    if found.status == "True":
        return ""
    return f"Machine {name} reports {type_} condition is {found.status.lower()} ({found.message})"


def _replaceable(plane: ControlPlane) -> Preflight:
    """While a Machine is being replaced less is asked for: else several failures at once could never be mended."""
    failures: list[str] = []
    components = not components_survive(plane.healthy_components())
    etcd = False
    if components:
        failures.append(
            "cannot add a new control plane Machine when there are no control plane Machines with all Kubernetes "
            "control plane components in healthy state. Please check Kubernetes control plane component status"
        )
    if plane.etcd_managed:
        view = plane.inside.etcd
        if view is None or not view.members:
            etcd = True
            failures.append("cannot check etcd cluster health before scale up, etcd member list is empty")
        elif not etcd_forecast(view.members, view.alarms, plane.member_health(), adding=True).safe:
            etcd = True
            message = "adding a new control plane Machine can lead to etcd quorum loss. Please check the etcd status"
            failures.append(message)
    return Preflight(components_unhealthy=components, etcd_unhealthy=etcd, failures=tuple(failures))
