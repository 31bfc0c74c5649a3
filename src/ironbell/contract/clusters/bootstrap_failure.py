"""A host's failed bootstrap, as the object of its infrastructure reports it, which learns of it first.

An infrastructure provider reports it in either of two ways on its machine's object:

* a condition `BootstrapExecSucceeded` or `BootstrapSucceeded` with status False, in either form of conditions
  (upstream's Docker provider has the former);
* the annotation `ironbell.dev/bootstrap-failure`, whose value is the reason in a sentence.

The bootstrap provider repeats it on its own object as condition `BootstrapSucceeded`, and so in `Ready`, which the
Machine shows as `BootstrapConfigReady`.

Source: kubernetes-sigs/cluster-api: test/infrastructure/docker/api/v1beta2/dockermachine_types.go (the condition).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.meta import Condition
from ironbell.api.unstructured import Unstructured
from ironbell.contract.conditions import conditions_of
from ironbell.contract.conditions.legacy import INFO, LegacyCondition, legacy_conditions

SENTINEL: Final = "/run/cluster-api/bootstrap-success.complete"
"""The file that appears on a host when kubeadm has ended well; providers may look for it."""
ANNOTATION: Final = "ironbell.dev/bootstrap-failure"
CONDITION: Final = "BootstrapSucceeded"
_CONDITIONS: Final = ("BootstrapExecSucceeded", CONDITION)
_MESSAGE_LIMIT: Final = 1024


def reported_failure(machine: Unstructured) -> str:
    """Return the reason why a host did not become a node, as its infrastructure reports it; empty without a report."""
    message = machine.metadata.annotations.get(ANNOTATION, "") or _condition(machine)
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[: _MESSAGE_LIMIT - 1]}…"


def _condition(machine: Unstructured) -> str:
    older = legacy_conditions(machine)
    # while a bootstrap is on its way the older form is False with severity Info, and both lists may be one
    on_its_way = {condition.type for condition in older if condition.severity == INFO}
    reported: list[Condition | LegacyCondition] = [*conditions_of(machine), *older]
    for condition in reported:
        if condition.type in _CONDITIONS and condition.status == "False" and condition.type not in on_its_way:
            return condition.message or condition.reason or "the host gave no reason"
    return ""
