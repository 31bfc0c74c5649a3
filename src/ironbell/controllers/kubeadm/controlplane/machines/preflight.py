"""Preflight checks: whether the set of a control plane's Machines may be changed now. Pure.

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
    """The obstacles to a change; there is none if all fields are false or empty."""

    topology_version: str = ""
    """The version that the topology has not propagated yet."""
    creation_stopped: str = ""
    """Reason why the creation of Machines is stopped."""
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
        """Lines of the messages of the conditions ScalingUp and ScalingDown."""
        lines = {
            f"* {self.creation_stopped}": self.creation_stopped,
            f"* waiting for a version upgrade to {self.topology_version} to be propagated": self.topology_version,
            "* waiting for a control plane Machine to complete deletion": self.deleting_machine,
            "* cluster certificates are missing or unknown": self.certificates_missing,
            "* waiting for control plane components to become healthy": self.components_unhealthy,
            "* waiting for etcd cluster to become healthy": self.etcd_unhealthy,
        }
        return [line for line, applies in lines.items() if applies]

    @property
    def event(self) -> str:
        """Message of the event about unhealthy Machines; empty if there are none."""
        if not self.failures:
            return ""
        failures = self.failures[0] if len(self.failures) == 1 else f"[{', '.join(self.failures)}]"
        return f"Waiting for control plane to pass preflight checks to continue reconciliation: {failures}"


PASSED: Final = Preflight()


def pending_topology_version(cluster: Cluster, version: str) -> str:
    """Return the version that the Cluster's topology has not propagated yet; empty if there is none to wait for."""
    desired = cluster.spec.topology.version
    step = cluster.metadata.annotations.get(ANNOTATION_UPGRADE_STEP, "")
    if not desired or version in (desired, step):
        return ""
    return step or desired


def preflight(plane: ControlPlane, *, scales_up: bool, without: Machine | None = None) -> Preflight:
    """Check whether a Machine may be created or deleted.

    Args:
        plane: the control plane, with the current conditions of its Machines.
        scales_up: whether a Machine is created.
        without: the Machine that will be deleted; its health does not matter.
    """
    if not plane.machines:
        return PASSED
    if pending := pending_topology_version(plane.cluster, plane.kcp.spec.version):
        return Preflight(topology_version=pending)
    if scales_up and not is_true(plane.kcp.status.conditions, ConditionType.CERTIFICATES_AVAILABLE):
        return Preflight(certificates_missing=True)
    if plane.deleting_machines:
        return Preflight(deleting_machine=True)
    checks = _stable(plane, without)
    if scales_up and not checks.passed and ANNOTATION_REMEDIATION_IN_PROGRESS in plane.kcp.metadata.annotations:
        return _replaceable(plane)
    return checks


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
    name, health = machine.metadata.name, condition(machine, type_)
    if health is None:
        return f"Machine {name} does not have {type_} condition"
    if health.status == "True":
        return ""
    return f"Machine {name} reports {type_} condition is {health.status.lower()} ({health.message})"


def _replaceable(plane: ControlPlane) -> Preflight:
    """Return the weaker checks while a Machine is being replaced, so that several failures can be repaired."""
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
