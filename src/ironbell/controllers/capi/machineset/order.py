"""The order in which a MachineSet deletes Machines, and the order of remediation.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_deletion_order.go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_DELETE_MACHINE, ANNOTATION_REMEDIATE_MACHINE
from ironbell.base.clock import parse_rfc3339
from ironbell.controllers.capi.machines import has_node, is_false, is_updating, status_of
from ironbell.controllers.capi.machineset.spread import crowded
from ironbell.kube.finalizers import is_deleting

OLDEST: Final = "Oldest"
NEWEST: Final = "Newest"

DELETING: Final = 100.0
REQUESTED: Final = 80.0
UPDATING: Final = 75.0
UNHEALTHY: Final = 60.0
UNSEEN: Final = 50.0
"""For a Machine whose Node is not observed. Upstream makes no difference; but a rollout that gives up an unavailable
Machine relies on the deletion of that Machine.
"""
ANY: Final = 20.0
_AGES: Final = 50.0
_TEN_DAYS_S: Final = 864000.0


def is_healthy(machine: Machine) -> bool:
    """Return whether a Machine has a Node, and no condition reports a problem."""
    return has_node(machine) and not is_false(machine, "NodeHealthy") and not is_false(machine, "HealthCheckSucceeded")


def priority(machine: Machine, order: str, now: datetime) -> float:
    """Priority of the deletion: the higher, the sooner."""
    if is_deleting(machine):
        return DELETING
    if ANNOTATION_DELETE_MACHINE in machine.metadata.annotations:
        return REQUESTED
    if is_updating(machine):
        return UPDATING
    if not is_healthy(machine):
        return UNHEALTHY
    by_age = _priority_by_age(machine, order, now)
    return UNSEEN + by_age / 100 if status_of(machine, "NodeHealthy") == "Unknown" else by_age


def to_delete(
    machines: Sequence[Machine], count: int, order: str, now: datetime, *, spread: bool = False
) -> list[Machine]:
    """The `count` Machines to delete; Machines that are being deleted are among the first.

    With `spread`, Machines of equal priority are deleted where most are.
    """
    if count <= 0:
        return []
    ranks = {machine.metadata.name: priority(machine, order, now) for machine in machines}
    ranked = sorted(machines, key=lambda machine: (-ranks[machine.metadata.name], machine.metadata.name))
    picked = ranked[:count]
    if not spread:
        return picked
    last = ranks[picked[-1].metadata.name]
    sure = [machine for machine in picked if ranks[machine.metadata.name] > last]
    equal = [machine for machine in ranked if ranks[machine.metadata.name] == last]
    picked_names = {machine.metadata.name for machine in sure}
    staying = [machine for machine in machines if machine.metadata.name not in picked_names]
    return sure + crowded(staying, equal, len(picked) - len(sure))


def to_remediate(machines: Sequence[Machine]) -> list[Machine]:
    """Machines that a user marked for remediation first, then the newest first."""
    by_name = sorted(machines, key=lambda machine: machine.metadata.name)
    by_age = sorted(by_name, key=lambda machine: machine.metadata.creation_timestamp or "", reverse=True)
    return sorted(by_age, key=lambda machine: ANNOTATION_REMEDIATE_MACHINE not in machine.metadata.annotations)


def _priority_by_age(machine: Machine, order: str, now: datetime) -> float:
    if order not in (OLDEST, NEWEST):
        return ANY
    age = _age_priority(machine, now)
    return age if order == OLDEST else _AGES - age


def _age_priority(machine: Machine, now: datetime) -> float:
    created = machine.metadata.creation_timestamp
    age_s = (now - parse_rfc3339(created)).total_seconds() if created else 0.0
    return _AGES * (1.0 - math.exp(-max(age_s, 0.0) / _TEN_DAYS_S))
