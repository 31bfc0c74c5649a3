"""Failure domains of workers: Machines are spread over them on request.

Upstream leaves workers in the domain of their template. With an annotation, a Machine whose template names no domain is
created where its MachineSet has the fewest, and a MachineSet that shrinks deletes Machines where it has the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machineset import MachineSet
from ironbell.contract.clusters.failure_domains import fewest
from ironbell.kube.finalizers import is_deleting

ANNOTATION_SPREAD: Final = "ironbell.dev/spread-failure-domains"
"""On a MachineDeployment or MachineSet: spread Machines over these failure domains, or over all if `true`.

On a Machine: its failure domain was chosen for this reason, and does not come from its template.
"""


def domains(machine_set: MachineSet, cluster: Cluster) -> tuple[str, ...]:
    """The domains to spread over; empty without the annotation, or if the template names a domain."""
    text = machine_set.metadata.annotations.get(ANNOTATION_SPREAD, "")
    if not text or text == "false" or machine_set.spec.template.spec.failure_domain:
        return ()
    known = sorted(domain.name for domain in cluster.status.failure_domains)
    if text == "true":
        return tuple(known)
    listed = {part.strip() for part in text.split(",")}
    return tuple(name for name in known if name in listed)


def chosen(names: Sequence[str], machines: Iterable[Machine], count: int, *, seed: str) -> list[str]:
    """The domains of the next `count` Machines, each with the fewest by then; empty texts without domains."""
    placed = [machine.spec.failure_domain for machine in machines if not is_deleting(machine)]
    picked: list[str] = []
    for _ in range(count):
        picked.append(fewest(names, (), [*placed, *picked], seed=seed))
    return picked


def crowded(machines: Sequence[Machine], order: Sequence[Machine], count: int) -> list[Machine]:
    """Select `count` of Machines that may equally be deleted, in this order, so that the others stay well spread."""
    sizes = Counter(machine.spec.failure_domain for machine in machines if not is_deleting(machine))
    left = list(order)
    picked: list[Machine] = []
    while left and len(picked) < count:
        machine = max(left, key=lambda candidate: sizes[candidate.spec.failure_domain])
        left.remove(machine)
        sizes[machine.spec.failure_domain] -= 1
        picked.append(machine)
    return picked
