"""The input of a decision about a MachineSet, and the slots for its Machines: one name per slot, and no slot is used
twice.

The name of a slot follows from the MachineSet's uid and the slot's number, so that a repeated decision names the object
that already exists, and not a second one. An annotation counts the used slots; it is written after the Machines, and
until then slots whose Machine exists are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from ironbell.api.cluster import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import ANNOTATION_REVISION, LABEL_DEPLOYMENT_NAME
from ironbell.base.labels import SelectorError
from ironbell.base.quantities import decimal
from ironbell.contract.clusters.external import External, read_reference
from ironbell.contract.clusters.name_templates import MACHINE_SET_MACHINES, NameTemplateError, render_name, suffix
from ironbell.contract.clusters.propagation import MACHINES_CREATED
from ironbell.contract.clusters.references import ObjectReference, Reference
from ironbell.contract.owners import controller_of
from ironbell.contract.selectors import matches
from ironbell.contract.templates import SUFFIX
from ironbell.controllers.capi.indexes import (
    MACHINE_SETS_OF_CLUSTER,
    MACHINES_BY_OWNER,
    ORPHAN_MACHINES,
    cluster_key,
)
from ironbell.controllers.capi.machineset.desired import Followed
from ironbell.kube.decision import Key
from ironbell.kube.finalizers import is_deleting
from ironbell.kube.manager.failures import Failure
from ironbell.kube.reconciler import Cache

BATCH: Final = 100
"""Number of Machines that one decision creates; the next are created once these appear in the cache."""


@dataclass(frozen=True, slots=True)
class Place:
    """A slot for a Machine, with the objects that an interrupted attempt has left in it."""

    slot: Slot
    infrastructure: External
    bootstrap: External | None = None


@dataclass(frozen=True, slots=True)
class Attached:
    """A Machine whose labels or annotations differ from the template, with the objects that it refers to."""

    machine: Machine
    infrastructure: External
    bootstrap: External | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """A MachineSet with everything that it refers to and owns."""

    machine_set: MachineSet
    cluster: Cluster | None
    owner: MachineDeployment | None = None
    machines: tuple[Machine, ...] = ()
    orphans: tuple[Machine, ...] = ()
    infrastructure: External | None = None
    bootstrap: External | None = None
    control_plane: External | None = None
    places: tuple[Place, ...] = ()
    next_slot: int = 0
    """The first unused slot."""
    naming_problem: str = ""
    """The reason why Machines cannot be named."""
    failure: Failure | None = None
    """The write that failed last time."""
    attached: tuple[Attached, ...] = ()

    @property
    def is_owned(self) -> bool:
        """Return whether it belongs to a MachineDeployment."""
        return LABEL_DEPLOYMENT_NAME in self.machine_set.metadata.labels

    @property
    def is_current(self) -> bool:
        """Return whether its MachineDeployment creates new Machines through it."""
        from_owner = self.owner.metadata.annotations.get(ANNOTATION_REVISION, "") if self.owner is not None else None
        return from_owner == self.machine_set.metadata.annotations.get(ANNOTATION_REVISION, "")

    @property
    def replicas(self) -> int:
        """Desired number of Machines."""
        return 0 if is_deleting(self.machine_set) else self.machine_set.spec.replicas or 0


def of_machine(machine: Machine, cache: Cache) -> Iterable[Key]:
    """The MachineSet that controls a Machine; without a controller, the MachineSets that select it."""
    controller = controller_of(machine)
    namespace = machine.metadata.namespace
    if controller is not None:
        return [(namespace, controller.name)] if controller.kind == MACHINE_SET.kind else []
    candidates = cache.indexed(MACHINE_SETS_OF_CLUSTER, cluster_key(namespace, machine.spec.cluster_name))
    return [machine_set.key for machine_set in candidates if selects(machine_set, machine)]


def selects(machine_set: MachineSet, machine: Machine) -> bool:
    """Return whether a MachineSet's selector matches a Machine; an invalid or empty selector matches none."""
    selector = machine_set.spec.selector
    try:
        return bool(selector.match_labels or selector.match_expressions) and matches(selector, machine.metadata.labels)
    except SelectorError:
        return False


def observe(cache: Cache, key: Key) -> Observed | None:
    """Gather the input of the decision."""
    machine_set = cache.get(MACHINE_SET, *key)
    if machine_set is None:
        return None
    namespace, spec = key[0], machine_set.spec
    cluster = cache.get(CLUSTER, namespace, spec.cluster_name)
    deployment = machine_set.metadata.labels.get(LABEL_DEPLOYMENT_NAME)
    machines = tuple(
        machine
        for machine in cache.indexed(MACHINES_BY_OWNER, machine_set.metadata.uid)
        if (controller := controller_of(machine)) is not None and controller.uid == machine_set.metadata.uid
    )
    orphans = cache.indexed(ORPHAN_MACHINES, cluster_key(namespace, spec.cluster_name))
    observed = Observed(
        machine_set,
        cluster,
        cache.get(MACHINE_DEPLOYMENT, namespace, deployment) if deployment else None,
        machines,
        tuple(machine for machine in orphans if selects(machine_set, machine)),
    )
    if cluster is None or is_deleting(machine_set):
        return observed
    return _with_references(cache, observed, cluster)


def _with_references(cache: Cache, observed: Observed, cluster: Cluster) -> Observed:
    machine_set, machines = observed.machine_set, observed.machines
    namespace, template = machine_set.metadata.namespace, machine_set.spec.template.spec
    config = template.bootstrap.config_ref
    plane = cluster.spec.control_plane_ref
    places, next_slot = _places(cache, observed)
    followed = Followed.of(machine_set)
    return Observed(
        machine_set,
        cluster,
        observed.owner,
        machines,
        observed.orphans,
        infrastructure=read_reference(cache, template.infrastructure_ref, namespace),
        bootstrap=read_reference(cache, config, namespace) if config.name else None,
        control_plane=read_reference(cache, plane, namespace) if plane.name else None,
        places=places,
        next_slot=next_slot,
        naming_problem=_naming_problem(machine_set),
        failure=cache.failure(machine_set.key),
        attached=tuple(
            Attached(
                machine,
                read_reference(cache, machine.spec.infrastructure_ref, namespace),
                read_reference(cache, machine.spec.bootstrap.config_ref, namespace)
                if machine.spec.bootstrap.config_ref.name
                else None,
            )
            for machine in machines
            if not is_deleting(machine) and followed.metadata(machine)
        ),
    )


def _places(cache: Cache, observed: Observed) -> tuple[tuple[Place, ...], int]:
    """Slots for the missing Machines, and the slots right behind them that an interrupted attempt has used."""
    machine_set = observed.machine_set
    namespace, template = machine_set.metadata.namespace, machine_set.spec.template.spec
    missing = min(observed.replicas - len(observed.machines) - len(observed.orphans), BATCH)
    next_slot = used_slots(machine_set)
    places: list[Place] = []
    for slot in free_slots(machine_set, lambda name: cache.get(MACHINE, namespace, name) is not None):
        config = template.bootstrap.config_ref
        place = Place(
            slot,
            _clone(cache, template.infrastructure_ref, namespace, slot.name),
            _clone(cache, config, namespace, slot.name) if config.name else None,
        )
        if not places:
            next_slot = slot.number
        if len(places) >= missing and not _left(place):
            break
        places.append(place)
    return tuple(places), next_slot


def _naming_problem(machine_set: MachineSet) -> str:
    try:
        slot_of(machine_set, used_slots(machine_set))
    except NameTemplateError as error:
        return f"spec.machineNaming.template: {error.message}"
    return ""


def _clone(cache: Cache, template: Reference, namespace: str, name: str) -> External:
    """The object that was cloned from a template under this name."""
    return read_reference(
        cache, ObjectReference(template.api_group, template.kind.removesuffix(SUFFIX), name), namespace
    )


def _left(place: Place) -> bool:
    """Return whether an interrupted attempt has left an object in this slot."""
    return place.infrastructure.exists or (place.bootstrap is not None and place.bootstrap.exists)


@dataclass(frozen=True, slots=True)
class Slot:
    """A name for one Machine."""

    number: int
    name: str


def used_slots(machine_set: MachineSet) -> int:
    """Number of slots that are recorded as used."""
    text = machine_set.metadata.annotations.get(MACHINES_CREATED, "")
    return decimal(text) or 0


def slot_of(machine_set: MachineSet, number: int) -> Slot:
    """The slot of this number.

    Raises:
        NameTemplateError: the naming template does not render a name.
    """
    template = machine_set.spec.machine_naming.template or MACHINE_SET_MACHINES
    random = suffix(f"{machine_set.metadata.uid}/machine/{number}")
    variables = {"machineSet": {"name": machine_set.metadata.name}}
    return Slot(number, render_name(template, machine_set.spec.cluster_name, random, variables))


def free_slots(machine_set: MachineSet, taken: Callable[[str], bool]) -> Iterator[Slot]:
    """Unused slots, in order, without end; none if the naming template does not render names."""
    for number in count(used_slots(machine_set)):
        try:
            slot = slot_of(machine_set, number)
        except NameTemplateError:
            return
        if not taken(slot.name):
            yield slot
