"""Conditions that report what the providers' objects say of themselves: ready, powered on, bootstrap failed.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go.
"""

from __future__ import annotations

from ironbell.contract.clusters.bootstrap_failure import reported_failure
from ironbell.contract.clusters.external import External, State
from ironbell.contract.conditions import Fallback, conditions_of, mirror
from ironbell.contract.conditions.reading import NO_REASON
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import MachineCondition, Reason
from ironbell.controllers.capi.machine.observed import Observed
from ironbell.kube.conditions import find_condition

_READY = "Ready"


def set_bootstrap_ready(draft: Draft, observed: Observed) -> None:
    """Whether the bootstrap data is there."""
    kind, external = MachineCondition.BOOTSTRAP_CONFIG_READY, observed.bootstrap
    if external is None:
        draft.set(kind, "True", Reason.DATA_SECRET_PROVIDED)
        return
    created = draft.status.initialization.bootstrap_data_secret_created is True
    name = external.reference.kind
    if draft.bootstrap_problem or external.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        _unreadable(draft, kind, external, draft.bootstrap_problem)
    elif external.is_found:
        _mirror(draft, kind, external, created, f"{name} status.initialization.dataSecretCreated is false")
    elif draft.is_deleting and created:
        draft.set(kind, "False", Reason.OBJECT_DELETED, f"{name} has been deleted")
    else:
        draft.set(kind, "False", Reason.OBJECT_DOES_NOT_EXIST, f"{name} does not exist")


def set_infrastructure_ready(draft: Draft, observed: Observed) -> None:
    """Whether the host is there."""
    kind, external = MachineCondition.INFRASTRUCTURE_READY, observed.infrastructure
    provisioned = draft.status.initialization.infrastructure_provisioned is True
    name = external.reference.kind
    if draft.infrastructure_problem or external.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        _unreadable(draft, kind, external, draft.infrastructure_problem)
    elif external.is_found:
        _mirror(draft, kind, external, provisioned, f"{name} status.initialization.provisioned is false")
    elif provisioned:
        while_there = "" if draft.is_deleting else " while the Machine still exists"
        draft.set(kind, "False", Reason.OBJECT_DELETED, f"{name} has been deleted{while_there}")
    else:
        draft.set(kind, "False", Reason.OBJECT_DOES_NOT_EXIST, f"{name} does not exist")


def set_powered_on(draft: Draft, observed: Observed) -> None:
    """Set the condition while the infrastructure's object reports that the Machine's server is switched off.

    Before it is provisioned, and while it is being deleted, it is switched off and on by those who work on it.
    """
    kind, external = MachineCondition.POWERED_ON, observed.infrastructure
    if external.is_found and draft.status.initialization.infrastructure_provisioned and not draft.is_deleting:
        found = find_condition(conditions_of(external.found[1]), kind)
        if found is not None and found.status == "False":
            draft.put(found)
            return
    if external.state is not State.UNKNOWN:
        draft.drop(kind)


def set_bootstrap_condition(draft: Draft, observed: Observed) -> None:
    """Set the condition while a provider reports a failure; afterwards it is True for a node, and removed otherwise.

    Upstream has no such condition; there a failed bootstrap shows only in the message of BootstrapConfigReady.
    """
    kind = MachineCondition.BOOTSTRAP_SUCCEEDED
    failure = _failure(observed)
    if failure:
        draft.set(kind, "False", Reason.BOOTSTRAP_FAILED, failure)
    elif draft.condition(kind) is None:
        return
    elif draft.status.node_ref.name:
        draft.set(kind, "True", Reason.SUCCEEDED)
    else:
        draft.drop(kind)


def _failure(observed: Observed) -> str:
    """What the infrastructure's object reports, which is the first to know, or else the bootstrap provider's."""
    externals = (observed.infrastructure, observed.bootstrap)
    objects = [external.obj for external in externals if external is not None and external.obj is not None]
    return next((failure for obj in objects if (failure := reported_failure(obj))), "")


def _mirror(draft: Draft, kind: str, external: External, is_true: bool, otherwise: str) -> None:
    _kind, obj = external.found
    fallback = Fallback("True", Reason.READY) if is_true else Fallback("False", Reason.NOT_READY, otherwise)
    found = mirror(conditions_of(obj), _READY, target=kind, fallback=fallback)
    if found.status == "True" and found.reason == NO_REASON:
        # An older provider's condition; these had no reason when all was well.
        found = replace(found, reason=Reason.READY)
    draft.put(found)


def _unreadable(draft: Draft, kind: str, external: External, problem: str) -> None:
    """What cannot be read for the moment is left as it was told before."""
    if not problem and external.state is State.UNKNOWN and not external.problem and draft.condition(kind) is not None:
        return
    draft.set(kind, "Unknown", Reason.INTERNAL_ERROR, problem or str(external))
