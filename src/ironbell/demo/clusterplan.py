"""The virtual servers of the demonstration's cluster, and its groups of workers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONTROL_PLANE_ROLE = "cp"
MEMORY_MIB = 3072
DISK = "8GiB"


@dataclass(frozen=True)
class Group:
    """Servers of one role: `ROLE-1`, `ROLE-2` and so on. Workers of one role are one MachineDeployment."""

    role: str
    kind: str
    """`namespace` or `qemu`, as a lab file names it."""
    count: int
    firmware: str = "uefi"

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(f"{self.role}-{number}" for number in range(1, self.count + 1))


@dataclass(frozen=True)
class Plan:
    """All servers of the cluster."""

    control_plane: Group
    workers: tuple[Group, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        return (self.control_plane, *self.workers)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each server, by its name."""
        return {name: group.kind for group in self.groups for name in group.machines}

    @property
    def worker_names(self) -> set[str]:
        return {name for group in self.workers for name in group.machines}

    @property
    def emulated(self) -> set[str]:
        """Servers that QEMU emulates, because it has no KVM."""
        return {name for name, kind in self.kinds.items() if kind != self.control_plane.kind}

    @property
    def shrinking(self) -> Group:
        """The group whose MachineDeployment the demonstration scales down: the first."""
        return self.workers[0]


def plan(*, workers: int, qemu_workers: int, has_kvm: bool, firmware: str = "uefi") -> Plan:
    """Plan one control plane, `workers` at native speed, and `qemu_workers` with real firmware.

    With KVM, QEMU runs at native speed too, and every server uses it. Groups without servers are left out.
    """
    fast = "qemu" if has_kvm else "namespace"
    groups = (Group("w", fast, workers, firmware), Group("q", "qemu", qemu_workers, firmware))
    return Plan(Group(CONTROL_PLANE_ROLE, fast, 1, firmware), tuple(group for group in groups if group.count))


def lab_file(plan: Plan, *, name: str, subnet: str) -> dict[str, Any]:
    """The lab file of the servers. This host reaches them, because controllers query the new cluster's API."""
    machines = [
        {"name": machine, "kind": group.kind, "firmware": group.firmware, "memory": MEMORY_MIB,
         "disks": [{"size": DISK}]}
        for group in plan.groups
        for machine in group.machines
    ]  # fmt: skip
    return {"name": name, "network": {"subnet": subnet, "reachable": True}, "machines": machines}
