"""The control plane that decisions work on: one frozen value with the observed state.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/control_plane.go, util/collections/machine_filters.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from ironbell.api.meta import Condition
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.kubeadm.controlplane.names import (
    ANNOTATION_HOOK,
    HEALTH_CHECK_SUCCEEDED,
    MACHINE_DELETING,
    NODE_HEALTHY,
    MachineCondition,
    pod_conditions,
)
from ironbell.controllers.kubeadm.controlplane.workload.queries import ComponentsView, EtcdCluster, EtcdView
from ironbell.kube.conditions import find_condition, is_true
from ironbell.kube.decision import Fields
from ironbell.workload.queries import NodeView

Body = Mapping[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Inside:
    """The observed state of the workload cluster; None where a query failed, with the error in the next field."""

    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    """Nodes of the control plane's Machines, by name."""
    nodes_error: str = ""
    components: ComponentsView | None = None
    components_error: str = ""
    etcd: EtcdView | None = None
    etcd_error: str = ""
    """Message of the condition."""
    strangers: Mapping[str, NodeView | None] = field(default_factory=dict)
    """Nodes of etcd members without a Machine, by name: None if the Node does not exist, absent until it is known."""


@dataclass(frozen=True)
class ControlPlane:
    """A KubeadmControlPlane with its Machines, the objects that belong to them, and the state of its cluster."""

    kcp: KubeadmControlPlane
    cluster: Cluster
    machines: tuple[Machine, ...] = ()
    """Its Machines by name, including those that are being deleted."""
    configs: Mapping[str, Fields] = field(default_factory=dict)
    """Specs of KubeadmConfigs by the name of their Machine, as plain data."""
    infra: Mapping[str, Body] = field(default_factory=dict)
    """Infrastructure machines by the name of their Machine."""
    inside: Inside = field(default_factory=Inside)
    outdated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why Machines are not up to date, by their name."""
    etcd_query: EtcdCluster | None = None
    """Query that `inside.etcd` is the result of."""

    @property
    def etcd_managed(self) -> bool:
        """Return whether etcd runs on the Machines."""
        external = self.kcp.spec.kubeadm_config_spec.cluster_configuration.etcd.external
        return not external.endpoints

    @property
    def initialized(self) -> bool:
        return bool(self.kcp.status.initialization.control_plane_initialized)

    @property
    def deleting(self) -> bool:
        return self.kcp.metadata.deletion_timestamp is not None

    @property
    def desired(self) -> int:
        """Desired number of Machines."""
        return self.kcp.spec.replicas if self.kcp.spec.replicas is not None else 1

    @property
    def domains(self) -> list[str]:
        """Failure domains for control planes."""
        return [domain.name for domain in self.cluster.status.failure_domains if domain.control_plane]

    @property
    def needs_rollout(self) -> list[Machine]:
        """Machines to be replaced, except those that are being deleted."""
        return [m for m in self.machines if m.metadata.name in self.outdated and not is_deleting(m)]

    @property
    def up_to_date(self) -> list[Machine]:
        return [m for m in self.machines if m.metadata.name not in self.outdated]

    @property
    def deleting_machines(self) -> list[Machine]:
        return [m for m in self.machines if is_deleting(m)]

    @property
    def to_be_remediated(self) -> list[Machine]:
        """Unhealthy Machines that this controller has to replace."""
        return [m for m in self.machines if is_unhealthy(m) and is_false(m, MachineCondition.OWNER_REMEDIATED)]

    def healthy_components(self) -> list[str]:
        """Return the names of Machines on which all Pods of the control plane are healthy."""
        return [m.metadata.name for m in self.machines if all_true(m, pod_conditions(self.etcd_managed))]

    def member_health(self) -> dict[str, bool]:
        """Return whether etcd members are healthy, by their name, which is the node's."""
        return {m.status.node_ref.name: _has_healthy_member(m) for m in self.machines if has_node(m)}

    def member_name(self, machine: Machine) -> str:
        """Return the name of the etcd member on a Machine, or empty."""
        if has_node(machine):
            return machine.status.node_ref.name
        provider_id = machine.spec.provider_id
        named = [node.name for node in self.inside.nodes.values() if provider_id and node.provider_id == provider_id]
        return named[0] if len(named) == 1 else ""


def _has_healthy_member(machine: Machine) -> bool:
    """Return whether a Machine's member is healthy. The member of a deleted Machine runs until its host is removed."""
    member, node = condition(machine, MachineCondition.ETCD_MEMBER), condition(machine, NODE_HEALTHY)
    if member is None or (member.status, member.reason) != ("False", MACHINE_DELETING):
        return member is not None and member.status == "True"
    return (
        ANNOTATION_HOOK in machine.metadata.annotations
        and not is_unhealthy(machine)
        and (node is None or node.status == "True")
    )


def is_deleting(machine: Machine) -> bool:
    return machine.metadata.deletion_timestamp is not None


def has_node(machine: Machine) -> bool:
    return bool(machine.status.node_ref.name)


def condition(machine: Machine, type_: str) -> Condition | None:
    """Return a v1beta2 condition of a Machine."""
    return find_condition(machine.status.conditions, type_)


def condition_true(machine: Machine, type_: str) -> bool:
    return is_true(machine.status.conditions, type_)


def is_false(machine: Machine, type_: str) -> bool:
    current = condition(machine, type_)
    return current is not None and current.status == "False"


def all_true(machine: Machine, types: Iterable[str]) -> bool:
    return all(condition_true(machine, type_) for type_ in types)


def is_unhealthy(machine: Machine) -> bool:
    """Return whether a MachineHealthCheck reports a Machine as unhealthy."""
    return is_false(machine, HEALTH_CHECK_SUCCEEDED)


def names(machines: Iterable[Machine]) -> list[str]:
    return sorted(machine.metadata.name for machine in machines)


def created(machine: Machine) -> datetime:
    """Return the time when a Machine was created."""
    return moment(machine.metadata.creation_timestamp) or _EPOCH


def oldest(machines: Sequence[Machine]) -> Machine:
    """Return the oldest of some Machines; the first by name if several are equally old."""
    return min(machines, key=lambda m: (created(m), m.metadata.name))


def moment(text: str | None) -> datetime | None:
    """Parse a time of the API; None if it is unset or not valid."""
    return parse_rfc3339(text) if text else None
