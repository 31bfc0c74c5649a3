"""Failure domains of workers: Machines are spread over them where that is asked for.

Upstream leaves workers where their template says. With an annotation, a Machine whose template names no domain goes
where fewest of its MachineSet are, and a MachineSet that shrinks gives up Machines where most are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machineset import MachineSet
from ironbell.contract.clusters.failure_domains import fewest
from ironbell.controllers.capi.names import ANNOTATION_SPREAD
from ironbell.kube.finalizers import is_deleting


def domains(machine_set: MachineSet, cluster: Cluster) -> tuple[str, ...]:
    """The domains to spread over; empty if that is not asked for, or if the template names one."""
    wanted = machine_set.metadata.annotations.get(ANNOTATION_SPREAD, "")
    if not wanted or wanted == "false" or machine_set.spec.template.spec.failure_domain:
        return ()
    known = sorted(domain.name for domain in cluster.status.failure_domains)
    if wanted == "true":
        return tuple(known)
    named = {part.strip() for part in wanted.split(",")}
    return tuple(name for name in known if name in named)


def chosen(names: Sequence[str], machines: Iterable[Machine], count: int, *, seed: str) -> list[str]:
    """The domains of the next `count` Machines, each where fewest are by then; empty texts without domains."""
    placed = [machine.spec.failure_domain for machine in machines if not is_deleting(machine)]
    picked: list[str] = []
    for _ in range(count):
        picked.append(fewest(names, (), [*placed, *picked], seed=seed))
    return picked


def crowded(machines: Sequence[Machine], order: Sequence[Machine], count: int) -> list[Machine]:
    """Of Machines equally fit to go, in this order, `count` that leave the others well spread."""
    sizes = Counter(machine.spec.failure_domain for machine in machines if not is_deleting(machine))
    left = list(order)
    picked: list[Machine] = []
    while left and len(picked) < count:
        machine = max(left, key=lambda candidate: sizes[candidate.spec.failure_domain])
        left.remove(machine)
        sizes[machine.spec.failure_domain] -= 1
        picked.append(machine)
    return picked
