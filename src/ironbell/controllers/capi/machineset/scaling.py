"""Creation and deletion of a MachineSet's Machines.

A Machine is created in three steps, each under the same name: its bootstrap object, its infrastructure, the Machine.
After an interruption the existing objects are used; objects that are no longer needed are deleted.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (syncReplicas).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ironbell.api.cluster import MACHINE, MACHINE_SET
from ironbell.api.cluster.machine import Machine
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.propagation import MACHINES_CREATED, handed_over
from ironbell.contract.owners import is_owned_by
from ironbell.contract.templates import SUFFIX, clone
from ironbell.controllers.capi.machineset import desired, spread
from ironbell.controllers.capi.machineset.observed import Observed, Place, used_slots
from ironbell.controllers.capi.machineset.order import to_delete
from ironbell.kube.decision import Action, Create, Fields, MergePatch, create, delete, emit, patch
from ironbell.kube.finalizers import is_deleting


@dataclass(frozen=True, slots=True)
class Failed:
    """A failed attempt to create a Machine."""

    reason: str
    """Reason of the v1beta1 condition `MachinesCreated`."""
    message: str
    object_name: str = ""

    @property
    def full_message(self) -> str:
        """The failed object and the message."""
        return f"{self.object_name} could not be created: {self.message}" if self.object_name else self.message


def failed(observed: Observed) -> Failed | None:
    """The last failed attempt to create a Machine; None if it succeeded."""
    if observed.naming_problem:
        return Failed("MachineCreationFailed", observed.naming_problem)
    failure = observed.failure
    if failure is None or not isinstance(failure.write, Create):
        return None
    kind, config = failure.write.kind, observed.machine_set.spec.template.spec.bootstrap.config_ref
    reason = "InfrastructureTemplateCloningFailed"
    if kind.collection == MACHINE.collection:
        reason = "MachineCreationFailed"
    elif (kind.group, kind.kind) == (config.api_group, config.kind.removesuffix(SUFFIX)):
        reason = "BootstrapTemplateCloningFailed"
    return Failed(reason, failure.message, f"{kind.kind} {failure.write.body['metadata']['name']}")


def created(observed: Observed) -> list[Action]:
    """The actions that create the missing Machines."""
    machine_set, cluster = observed.machine_set, observed.cluster
    infrastructure, missing = observed.infrastructure, missing_machines(observed)
    places = [place for place in observed.places if _is_usable(observed, place)][:missing]
    if cluster is None or infrastructure is None or not places:
        return []
    domains = spread.domains(machine_set, cluster)
    chosen = spread.chosen(domains, observed.machines, len(places), seed=machine_set.metadata.uid)
    actions: list[Action] = []
    for place, domain in zip(places, chosen, strict=True):
        actions += _clones(observed, place, infrastructure)
        name = place.slot.name
        reference = _reference(place.infrastructure)
        bootstrap = _reference(place.bootstrap) if place.bootstrap is not None else None
        actions.append(create(MACHINE, desired.new_machine(machine_set, name, domain, reference, bootstrap)))
        actions.append(emit(MACHINE_SET, machine_set, reason="SuccessfulCreate", message=f'Created Machine "{name}"'))
    if counted := used_slots_patch(observed, places[-1].slot.number + 1):
        actions.append(counted)
    return actions


def used_slots_patch(observed: Observed, used: int) -> MergePatch | None:
    """The patch that records the number of used slots; None if it is recorded already."""
    if used <= used_slots(observed.machine_set):
        return None
    body = {"metadata": {"annotations": {MACHINES_CREATED: str(used)}}}
    return patch(MACHINE_SET, observed.machine_set, body, locked=True)


def cleaned(observed: Observed) -> Iterator[Action]:
    """Delete the objects that were created for Machines that are no longer needed."""
    for place in observed.places[missing_machines(observed) :]:
        for external in (place.bootstrap, place.infrastructure):
            if external is not None and external.exists and not external.is_deleting:
                kind, obj = external.kind_and_object
                if is_owned_by(obj, MACHINE_SET, observed.machine_set):
                    yield delete(kind, obj)


def deleted(observed: Observed, now: datetime) -> list[Action]:
    """The actions that delete surplus Machines."""
    machine_set, machines = observed.machine_set, observed.machines
    order = machine_set.spec.deletion.order
    spreads = observed.cluster is not None and bool(spread.domains(machine_set, observed.cluster))
    surplus = to_delete(machines, len(machines) - observed.replicas, order, now, spread=spreads)
    return [action for machine in surplus if not is_deleting(machine) for action in _deletion(observed, machine)]


def missing_machines(observed: Observed) -> int:
    """Number of Machines to create."""
    return max(observed.replicas - len(observed.machines) - len(observed.orphans), 0)


def _deletion(observed: Observed, machine: Machine) -> list[Action]:
    message = f'Deleted Machine "{machine.metadata.name}"'
    return [
        delete(MACHINE, machine),
        emit(MACHINE_SET, observed.machine_set, reason="SuccessfulDelete", message=message),
    ]


def _is_usable(observed: Observed, place: Place) -> bool:
    """Return whether a slot has no objects of other owners."""
    objects = [external for external in (place.infrastructure, place.bootstrap) if external is not None]
    return all(external.is_missing or (external.exists and _is_fresh(observed, external)) for external in objects)


def _is_fresh(observed: Observed, external: External) -> bool:
    _kind, obj = external.kind_and_object
    return not external.is_deleting and is_owned_by(obj, MACHINE_SET, observed.machine_set)


def _clones(observed: Observed, place: Place, infrastructure: External) -> Iterator[Create]:
    if place.bootstrap is not None and observed.bootstrap is not None and place.bootstrap.is_missing:
        yield _clone(observed, observed.bootstrap, place.bootstrap, place.slot.name)
    if place.infrastructure.is_missing:
        yield _clone(observed, infrastructure, place.infrastructure, place.slot.name)


def _clone(observed: Observed, template: External, target: External, name: str) -> Create:
    machine_set = observed.machine_set
    labels, annotations = handed_over(desired.labels(machine_set), desired.handed_annotations(machine_set))
    if target.kind is None:
        raise AssertionError("a clone that is missing has a kind")
    return clone(
        template,
        target.kind,
        name=name,
        cluster=machine_set.spec.cluster_name,
        labels=labels,
        annotations=annotations,
        owners=[desired.cloned_by(machine_set)],
    )


def _reference(external: External) -> Fields:
    reference = external.reference
    return {"apiGroup": reference.api_group, "kind": reference.kind, "name": reference.name}
