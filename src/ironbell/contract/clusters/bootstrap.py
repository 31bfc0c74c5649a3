"""Fields of bootstrap providers' objects, by both contracts, and the report of a host's failed bootstrap.

The object of a host's infrastructure learns first of a failed bootstrap. The provider reports it there in either of two
ways:

* a condition `BootstrapExecSucceeded` or `BootstrapSucceeded` with status False, in either form of conditions
  (upstream's Docker provider has the former);
* the annotation `ironbell.dev/bootstrap-failure`, whose value is the reason in a sentence.

The bootstrap provider repeats it on its own object as condition `BootstrapSucceeded`, and so in `Ready`, which the
Machine shows as `BootstrapConfigReady`.

Source: kubernetes-sigs/cluster-api: internal/contract/bootstrap.go,
test/infrastructure/docker/api/v1beta2/dockermachine_types.go (the condition).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.meta import Condition
from ironbell.api.unstructured import Unstructured
from ironbell.contract.clusters.external import ProviderObject
from ironbell.contract.clusters.references import V1BETA1
from ironbell.contract.conditions import conditions_of
from ironbell.contract.conditions.legacy import INFO, LegacyCondition, legacy_conditions
from ironbell.contract.fields import flag_at, text_at

SENTINEL: Final = "/run/cluster-api/bootstrap-success.complete"
"""The file that appears on a host when kubeadm has ended well; providers may look for it."""
FAILURE_ANNOTATION: Final = "ironbell.dev/bootstrap-failure"
BOOTSTRAP_SUCCEEDED: Final = "BootstrapSucceeded"
_FAILURE_CONDITIONS: Final = ("BootstrapExecSucceeded", BOOTSTRAP_SUCCEEDED)
_MESSAGE_LIMIT: Final = 1024


def reported_failure(machine: Unstructured) -> str:
    """Return the reason why a host did not become a node, as its infrastructure reports it; empty without a report."""
    message = machine.metadata.annotations.get(FAILURE_ANNOTATION, "") or _condition(machine)
    return message if len(message) <= _MESSAGE_LIMIT else f"{message[: _MESSAGE_LIMIT - 1]}…"


def _condition(machine: Unstructured) -> str:
    older = legacy_conditions(machine)
    # while a bootstrap is on its way the older form is False with severity Info, and both lists may be one
    on_its_way = {condition.type for condition in older if condition.severity == INFO}
    reported: list[Condition | LegacyCondition] = [*conditions_of(machine), *older]
    for condition in reported:
        if condition.type in _FAILURE_CONDITIONS and condition.status == "False" and condition.type not in on_its_way:
            return condition.message or condition.reason or "the host gave no reason"
    return ""


class BootstrapConfig(ProviderObject):
    """A bootstrap configuration."""

    @property
    def data_secret_created_field(self) -> str:
        """The field that reports it."""
        return "status.ready" if self.contract == V1BETA1 else "status.initialization.dataSecretCreated"

    @property
    def data_secret_created(self) -> bool:
        """Return whether the Secret with the data exists."""
        return flag_at(self.body, *self.data_secret_created_field.split(".")) or False

    @property
    def data_secret_name(self) -> str:
        return text_at(self.body, "status", "dataSecretName")
