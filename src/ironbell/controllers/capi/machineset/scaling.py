"""Making and deleting Machines of a MachineSet.

A Machine is made in three steps, each under the same name: what bootstraps it, its infrastructure, the Machine. Who is
interrupted finds what is there already and goes on; what is there and no more needed is deleted.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machineset/machineset_controller.go (syncReplicas).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from ironbell.api.cluster import MACHINE, MACHINE_SET
from ironbell.api.cluster.machine import Machine
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.propagation import MACHINES_MADE, handed_over
from ironbell.contract.owners import is_owned_by
from ironbell.contract.templates import SUFFIX, clone
from ironbell.controllers.capi.machineset import desired, slots, spread
from ironbell.controllers.capi.machineset.observed import Observed, Place
from ironbell.controllers.capi.machineset.order import to_delete
from ironbell.kube.decision import Action, Create, Fields, MergePatch, create, delete, emit, patch
from ironbell.kube.finalizers import is_deleting


@dataclass(frozen=True, slots=True)
class Failed:
    """Why an attempt to make a Machine came to nothing."""

    reason: str
    """Of the older condition `MachinesCreated`."""
    message: str
    what: str = ""

    @property
    def told(self) -> str:
        """All of it in one line."""
        return f"{self.what} could not be created: {self.message}" if self.what else self.message


def failed(observed: Observed) -> Failed | None:
    """Why the last attempt to make a Machine came to nothing; None if it did not."""
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
    """The actions that make the Machines that are missing."""
    machine_set, cluster = observed.machine_set, observed.cluster
    infrastructure, missing = observed.infrastructure, missing_machines(observed)
    places = [place for place in observed.places if _is_ours(observed, place)][:missing]
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
    if counted := noted(observed, places[-1].slot.number + 1):
        actions.append(counted)
    return actions


def noted(observed: Observed, used: int) -> MergePatch | None:
    """The patch that says how many slots are used up; None if it is known."""
    if used <= slots.used(observed.machine_set):
        return None
    body = {"metadata": {"annotations": {MACHINES_MADE: str(used)}}}
    return patch(MACHINE_SET, observed.machine_set, body, locked=True)


def cleaned(observed: Observed) -> Iterator[Action]:
    """Deletes what was made for Machines that are not needed any more."""
    for place in observed.places[missing_machines(observed) :]:
        for external in (place.bootstrap, place.infrastructure):
            if external is not None and external.is_found and not external.is_deleting:
                kind, obj = external.found
                if is_owned_by(obj, MACHINE_SET, observed.machine_set):
                    yield delete(kind, obj)


def deleted(observed: Observed, now: datetime) -> list[Action]:
    """The actions that delete the Machines that are too many."""
    machine_set, machines = observed.machine_set, observed.machines
    order = machine_set.spec.deletion.order
    spreads = observed.cluster is not None and bool(spread.domains(machine_set, observed.cluster))
    surplus = to_delete(machines, len(machines) - observed.replicas, order, now, spread=spreads)
    return [action for machine in surplus if not is_deleting(machine) for action in _gone(observed, machine)]


def missing_machines(observed: Observed) -> int:
    """How many Machines are to be made."""
    return max(observed.replicas - len(observed.machines) - len(observed.orphans), 0)


def _gone(observed: Observed, machine: Machine) -> list[Action]:
    message = f'Deleted Machine "{machine.metadata.name}"'
    return [
        delete(MACHINE, machine),
        emit(MACHINE_SET, observed.machine_set, reason="SuccessfulDelete", message=message),
    ]


def _is_ours(observed: Observed, place: Place) -> bool:
    """Whether nothing of somebody else is in the way of a slot."""
    found = [external for external in (place.infrastructure, place.bootstrap) if external is not None]
    return all(external.is_missing or (external.is_found and _is_fresh(observed, external)) for external in found)


def _is_fresh(observed: Observed, external: External) -> bool:
    _kind, obj = external.found
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
    about = external.reference
    return {"apiGroup": about.api_group, "kind": about.kind, "name": about.name}
