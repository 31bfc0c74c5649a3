"""What a decision on a TinkerbellRemediation depends on, gathered from the cache. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE, TINKERBELL_REMEDIATION
from ironbell.api.capt.tinkerbellcluster import TinkerbellCluster
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.capt.tinkerbellremediation import TinkerbellRemediation
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.controllers.capt.host import LIFECYCLE
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache, Index, Watch, read_by
from ironbell.provisioner.lifecycle.created import power_cycle_name
from ironbell.provisioner.lifecycle.names import POWER_CYCLE_TURN
from ironbell.provisioner.lifecycle.observe import BY_OWNER


def _control_plane_of(machine: Machine) -> list[str]:
    is_one = LABEL_CONTROL_PLANE in machine.metadata.labels
    return [f"{machine.metadata.namespace}/{machine.spec.cluster_name}"] if is_one else []


CONTROL_PLANE: Final = Index(MACHINE, "capt-control-plane", _control_plane_of)
"""Machines of a cluster's control plane."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A TinkerbellRemediation and everything around it."""

    obj: TinkerbellRemediation
    machine: Machine | None = None
    cluster: Cluster | None = None
    tinkerbell_machine: TinkerbellMachine | None = None
    infrastructure: TinkerbellCluster | None = None
    hardware: Hardware | None = None
    """The server that the machine has."""
    job: Job | None = None
    """The power cycle that was made last."""
    peers: tuple[Machine, ...] = ()
    """The other machines of the control plane, if it is of one."""
    holder: TinkerbellRemediation | None = None
    """Whose turn it is to power cycle a machine of the control plane."""

    @property
    def mark(self) -> str:
        """How the cluster says that it is our turn."""
        return f"{'/'.join(self.obj.key)} {self.obj.metadata.uid}"

    @property
    def is_control_plane(self) -> bool:
        return self.machine is not None and LABEL_CONTROL_PLANE in self.machine.metadata.labels


def gather(cache: Cache, key: Key) -> Observed | None:
    """Everything; None if there is no such remediation."""
    obj = cache.get(TINKERBELL_REMEDIATION, *key)
    if obj is None:
        return None
    namespace = key[0]
    owner = next((one for one in obj.metadata.owner_references if one.kind == MACHINE.kind), None)
    machine = cache.get(MACHINE, namespace, owner.name) if owner is not None else None
    if machine is None or owner is None or machine.metadata.uid != owner.uid:
        return Observed(obj)
    cluster = cache.get(CLUSTER, namespace, machine.spec.cluster_name)
    ours = None
    if machine.spec.infrastructure_ref.kind == TINKERBELL_MACHINE.kind:
        ours = cache.get(TINKERBELL_MACHINE, namespace, machine.spec.infrastructure_ref.name)
    infrastructure = None
    if cluster is not None and cluster.spec.infrastructure_ref.kind == TINKERBELL_CLUSTER.kind:
        infrastructure = cache.get(TINKERBELL_CLUSTER, namespace, cluster.spec.infrastructure_ref.name)
    hardware = LIFECYCLE.server_of(cache, ours) if ours is not None else None
    where = hardware.metadata.namespace if hardware is not None else ""
    team = (
        cache.indexed(CONTROL_PLANE, f"{namespace}/{machine.spec.cluster_name}") if _control_plane_of(machine) else ()
    )
    return Observed(
        obj=obj,
        machine=machine,
        cluster=cluster,
        tinkerbell_machine=ours,
        infrastructure=infrastructure,
        hardware=hardware,
        job=cache.get(JOB, where, power_cycle_name(ours)) if ours is not None and hardware is not None else None,
        peers=tuple(one for one in team if one.key != machine.key),
        holder=_holder(cache, infrastructure),
    )


def _holder(cache: Cache, infrastructure: TinkerbellCluster | None) -> TinkerbellRemediation | None:
    """Whose turn it is, as long as that remediation is there."""
    text = infrastructure.metadata.annotations.get(POWER_CYCLE_TURN, "") if infrastructure is not None else ""
    place, _, uid = text.partition(" ")
    namespace, _, name = place.partition("/")
    found = cache.get(TINKERBELL_REMEDIATION, namespace, name) if name else None
    return found if found is not None and found.metadata.uid == uid else None


WATCHES: Final[Sequence[Watch[Any]]] = (
    read_by(MACHINE, CONTROL_PLANE),
    read_by(CLUSTER),
    read_by(TINKERBELL_MACHINE),
    read_by(TINKERBELL_CLUSTER),
    read_by(HARDWARE, BY_OWNER),
    read_by(JOB),
    read_by(TINKERBELL_REMEDIATION),
)
INDEXES: Final[Sequence[Index[Any]]] = (CONTROL_PLANE, BY_OWNER)
