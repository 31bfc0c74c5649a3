"""BootstrapSucceeded: whether the Machine's host reported that its bootstrap failed, and why. Pure.

Upstream has no such condition on a Machine; a failed bootstrap shows there only in the message of BootstrapConfigReady.
"""

from __future__ import annotations

from ironbell.contract.bootstrap_failure import reported_failure
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.names import MachineCondition, Reason
from ironbell.controllers.capi.machine.observed import Observed


def set_bootstrap_condition(draft: Draft, observed: Observed) -> None:
    """Set the condition while a provider reports a failure; afterwards it is True for a node, and removed otherwise."""
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
