"""How a host's failed bootstrap is told: by the object of its infrastructure, which is the first to hear of it.

An infrastructure provider says it in either of two ways on its machine's object:

* a condition `BootstrapExecSucceeded` or `BootstrapSucceeded` with status False, in either form of conditions
  (upstream's Docker provider has the former);
* the annotation `ironbell.dev/bootstrap-failure`, whose value is the reason in a sentence.

The bootstrap provider repeats it on its own object as condition `BootstrapSucceeded`, and so in `Ready`, which the
Machine shows as `BootstrapConfigReady`.

Source: kubernetes-sigs/cluster-api: test/infrastructure/docker/api/v1beta2/dockermachine_types.go (the condition).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.unstructured import Unstructured
from ironbell.contract.conditions import conditions_of
from ironbell.contract.conditions.legacy import INFO, legacy_conditions

SENTINEL: Final = "/run/cluster-api/bootstrap-success.complete"
"""The file that appears on a host when kubeadm has ended well; providers may look for it."""
ANNOTATION: Final = "ironbell.dev/bootstrap-failure"
CONDITION: Final = "BootstrapSucceeded"
_CONDITIONS: Final = ("BootstrapExecSucceeded", CONDITION)
_MESSAGE_LIMIT: Final = 1024


def reported_failure(machine: Unstructured) -> str:
    """Why a host did not become a node, as its infrastructure says; empty if it says no such thing."""
    said = machine.metadata.annotations.get(ANNOTATION, "") or _condition(machine)
    return said if len(said) <= _MESSAGE_LIMIT else f"{said[: _MESSAGE_LIMIT - 1]}…"


def _condition(machine: Unstructured) -> str:
    older = legacy_conditions(machine)
    # while a bootstrap is on its way the older form is False with severity Info, and both lists may be one
    on_its_way = {condition.type for condition in older if condition.severity == INFO}
    said = [(one.type, one.status, one.message or one.reason) for one in conditions_of(machine)]
    said += [(one.type, one.status, one.message or one.reason) for one in older]
    for name, status, why in said:
        if name in _CONDITIONS and status == "False" and name not in on_its_way:
            return why or "the host gave no reason"
    return ""
