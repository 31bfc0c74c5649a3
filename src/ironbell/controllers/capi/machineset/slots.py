"""Names of a MachineSet's Machines: one per slot, and no slot is used twice.

The name of a slot follows from the MachineSet's uid and the slot's number, so that a repeated decision meets the
object that was made before and not a second one. How many slots are used up is kept in an annotation, written after
the Machines; until then, slots whose Machine is there are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from ironbell.api.cluster.machineset import MachineSet
from ironbell.base.numbers import decimal
from ironbell.contract.clusters.generated_names import suffix
from ironbell.contract.clusters.name_templates import MACHINE_SET_MACHINES, NameTemplateError, render_name
from ironbell.contract.clusters.propagation import MACHINES_MADE


@dataclass(frozen=True, slots=True)
class Slot:
    """One name for one Machine."""

    number: int
    name: str


def used(machine_set: MachineSet) -> int:
    """How many slots are known to be used up."""
    text = machine_set.metadata.annotations.get(MACHINES_MADE, "")
    return decimal(text) or 0


def slot(machine_set: MachineSet, number: int) -> Slot:
    """The slot of this number.

    Raises:
        NameTemplateError: the naming template gives no name.
    """
    template = machine_set.spec.machine_naming.template or MACHINE_SET_MACHINES
    random = suffix(f"{machine_set.metadata.uid}/machine/{number}")
    variables = {"machineSet": {"name": machine_set.metadata.name}}
    return Slot(number, render_name(template, machine_set.spec.cluster_name, random, variables))


def free(machine_set: MachineSet, taken: Callable[[str], bool]) -> Iterator[Slot]:
    """Slots whose name nobody has, in order, for ever; none if the naming template gives no names."""
    for number in count(used(machine_set)):
        try:
            found = slot(machine_set, number)
        except NameTemplateError:
            return
        if not taken(found.name):
            yield found
