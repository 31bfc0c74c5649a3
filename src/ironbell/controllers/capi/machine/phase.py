"""The phase: how far a Machine is, in a word.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go
(setMachinePhaseAndLastUpdated).
"""

from __future__ import annotations

from ironbell.base.clock import rfc3339
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import MachineCondition, Phase


def set_phase(draft: Draft) -> None:
    """Set the phase, and when it changed."""
    phase = _phase(draft)
    if phase != draft.status.phase:
        draft.status = replace(draft.status, phase=phase, last_updated=rfc3339(draft.now))


def _phase(draft: Draft) -> str:
    initialization = draft.status.initialization
    updating = draft.condition(MachineCondition.UPDATING)
    if draft.is_deleting:
        return Phase.DELETING
    if updating is not None and updating.status == "True":
        return Phase.UPDATING
    if draft.status.node_ref.name and initialization.infrastructure_provisioned:
        return Phase.RUNNING
    if draft.spec.provider_id:
        return Phase.PROVISIONED
    if initialization.bootstrap_data_secret_created and not initialization.infrastructure_provisioned:
        return Phase.PROVISIONING
    return draft.status.phase or Phase.PENDING
