"""Selection of the Machine to delete, to remediate, or to lead etcd. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/{scale,remediation,
kubeadmcontrolplane_controller}.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_DELETE_MACHINE, ANNOTATION_REMEDIATE_MACHINE
from ironbell.contract.clusters.failure_domains import fewest, most
from ironbell.controllers.kubeadm.controlplane.model import (
    ControlPlane,
    condition_true,
    created,
    has_node,
    is_deleting,
    is_false,
    oldest,
)
from ironbell.controllers.kubeadm.controlplane.names import (
    HEALTH_CHECK_SUCCEEDED,
    KUBERNETES_PODS,
    MachineCondition,
    health_conditions,
)


def domain_for_new(plane: ControlPlane) -> str:
    """Return the failure domain of the next Machine; empty if there are no domains."""
    all_domains = [machine.spec.failure_domain for machine in plane.machines]
    up_to_date = [machine.spec.failure_domain for machine in plane.up_to_date if not is_deleting(machine)]
    return fewest(plane.domains, all_domains, up_to_date, seed=plane.kcp.metadata.uid)


def victim(plane: ControlPlane, outdated: Sequence[Machine]) -> Machine:
    """Return the Machine to delete next: one that the user marked, then an outdated one, the unhealthy ones first; the
    others stay evenly spread.

    A Machine without a Node is deleted before one with a Node.
    """
    return _by_domain(plane, _eligible(plane, outdated))


def _eligible(plane: ControlPlane, outdated: Sequence[Machine]) -> Sequence[Machine]:
    def marked(machines: Sequence[Machine]) -> list[Machine]:
        return [machine for machine in machines if ANNOTATION_DELETE_MACHINE in machine.metadata.annotations]

    def unhealthy(machines: Sequence[Machine]) -> list[Machine]:
        types = health_conditions(plane.etcd_managed)
        return [machine for machine in machines if any(is_false(machine, type_) for type_ in types)]

    def awaited(machines: Sequence[Machine]) -> list[Machine]:
        # upstream deletes a Machine with a Node, and then waits for a Node that may never come
        return [machine for machine in machines if not has_node(machine)]

    first = marked(outdated) or marked(plane.machines) or unhealthy(outdated) or awaited(outdated)
    return first or outdated or awaited(plane.machines) or plane.machines


def _by_domain(plane: ControlPlane, eligible: Sequence[Machine]) -> Machine:
    domains = plane.domains
    elsewhere = [machine for machine in eligible if machine.spec.failure_domain not in domains]
    if elsewhere:
        return oldest(elsewhere)
    all_domains = [machine.spec.failure_domain for machine in plane.machines]
    domain = most(
        domains, all_domains, [machine.spec.failure_domain for machine in eligible], seed=plane.kcp.metadata.uid
    )
    return oldest([machine for machine in eligible if machine.spec.failure_domain == domain])


def to_remediate(plane: ControlPlane, candidates: Sequence[Machine]) -> Machine:
    """Return the Machine with the most failures: without it, the others are most likely to work."""
    types: tuple[MachineCondition, ...] = (*KUBERNETES_PODS, MachineCondition.LABELS_AND_TAINTS)
    if plane.etcd_managed:
        types = (MachineCondition.ETCD_MEMBER, MachineCondition.ETCD_POD, *types)

    def rank(machine: Machine) -> tuple[Any, ...]:
        return (
            ANNOTATION_REMEDIATE_MACHINE not in machine.metadata.annotations,
            has_node(machine),
            *(condition_true(machine, type_) for type_ in types),
            created(machine),
            machine.metadata.name,
        )

    return min(candidates, key=rank)


def leader_candidates(plane: ControlPlane, leaving: Machine) -> list[Machine]:
    """Return the Machines that can lead etcd instead of one that is being removed, the most reliable first."""

    def rank(machine: Machine) -> tuple[Any, ...]:
        return (
            not condition_true(machine, MachineCondition.ETCD_MEMBER),
            not condition_true(machine, HEALTH_CHECK_SUCCEEDED),
            not condition_true(machine, MachineCondition.UP_TO_DATE),
            -created(machine).timestamp(),
            machine.metadata.name,
        )

    others = [m for m in plane.machines if has_node(m) and not is_deleting(m) and m.key != leaving.key]
    return sorted(others, key=rank)
