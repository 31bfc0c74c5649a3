"""Creation and deletion of a MachineSet's Machines.

A Machine is created in three steps, each under the same name: its bootstrap object, its infrastructure, the Machine.
After an interruption the existing objects are used; objects that are no longer needed are deleted.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (syncReplicas).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ironbell.api.cluster import MACHINE, MACHINE_SET
from ironbell.api.cluster.machineset import MachineSet
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.propagation import MACHINES_CREATED, handed_over
from ironbell.contract.conditions.draft import ConditionsDraft
from ironbell.contract.owners import is_owned_by, owner_reference
from ironbell.contract.templates import SUFFIX, clone
from ironbell.controllers.capi.machineset import desired, spread
from ironbell.controllers.capi.machineset.observed import Observed, Place, used_slots
from ironbell.controllers.capi.machineset.order import to_delete
from ironbell.kube.decision import Action, Create, Fields, MergePatch, create, delete, patch
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


def create_machines(draft: ConditionsDraft[MachineSet], observed: Observed) -> None:
    """Create the missing Machines."""
    machine_set, cluster = observed.machine_set, observed.cluster
    infrastructure, missing = observed.infrastructure, missing_machines(observed)
    places = [place for place in observed.places if _is_usable(observed, place)][:missing]
    if cluster is None or infrastructure is None or not places:
        return
    domains = spread.domains(machine_set, cluster)
    chosen = spread.chosen(domains, observed.machines, len(places), seed=machine_set.metadata.uid)
    for place, domain in zip(places, chosen, strict=True):
        draft.last += _clones(observed, place, infrastructure)
        name = place.slot.name
        reference = _reference(place.infrastructure)
        bootstrap = _reference(place.bootstrap) if place.bootstrap is not None else None
        draft.last.append(create(MACHINE, desired.new_machine(machine_set, name, domain, reference, bootstrap)))
        draft.last.append(draft.event("SuccessfulCreate", f'Created Machine "{name}"'))
    draft.last.append(used_slots_patch(observed, places[-1].slot.number + 1))


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


def delete_machines(draft: ConditionsDraft[MachineSet], observed: Observed) -> None:
    """Delete surplus Machines."""
    machine_set, machines = observed.machine_set, observed.machines
    order = machine_set.spec.deletion.order
    spreads = observed.cluster is not None and bool(spread.domains(machine_set, observed.cluster))
    for machine in to_delete(machines, len(machines) - observed.replicas, order, draft.now, spread=spreads):
        if not is_deleting(machine):
            event = draft.event("SuccessfulDelete", f'Deleted Machine "{machine.metadata.name}"')
            draft.last += [delete(MACHINE, machine), event]


def missing_machines(observed: Observed) -> int:
    """Number of Machines to create."""
    return max(observed.replicas - len(observed.machines) - len(observed.orphans), 0)


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
        owners=[owner_reference(MACHINE_SET, machine_set)],
    )


def _reference(external: External) -> Fields:
    reference = external.reference
    return {"apiGroup": reference.api_group, "kind": reference.kind, "name": reference.name}
