"""The host: wait for its provider to have made it, and take over what it says. Pure.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_phases.go (reconcileInfrastructure).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import MachineAddress, MachineAddressType
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.conditions.legacy import INFO
from ironbell.contract.fields import text_at
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.externals import mirrored_legacy, note_failure, take_over
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason
from ironbell.controllers.capi.machine.observed import Observed

INVALID_CONFIGURATION = "InvalidConfiguration"
"""The older API's reason for a host that is gone."""
ADDRESS_LIMIT: Final = 256
_ADDRESS_TYPES: Final = frozenset(MachineAddressType)


def reconcile(draft: Draft, observed: Observed, cluster: Cluster) -> None:
    """Bring the infrastructure forward. Once provisioned it stays so, whatever its provider says later."""
    external = observed.infrastructure
    if not external.is_found:
        _not_found(draft, external)
        return
    draft.infrastructure_problem = take_over(draft, external, cluster)
    if draft.infrastructure_problem:
        draft.wait("InfrastructureUnusable", draft.infrastructure_problem)
        return
    host = InfrastructureMachine.of(external)
    note_failure(draft, external, host.failure_reason, host.failure_message)
    reason = LegacyReason.DELETING if draft.is_deleting else LegacyReason.WAITING_FOR_INFRASTRUCTURE
    draft.put_legacy(
        mirrored_legacy(external, Legacy.INFRASTRUCTURE_READY, is_true=host.provisioned, reason=reason, severity=INFO)
    )
    if external.is_deleting:
        return
    if not host.provisioned and not is_provisioned(draft):
        draft.wait("WaitingForInfrastructure", f"{external}: {host.provisioned_field} is not true yet")
        return
    if not host.provider_id:
        draft.wait("WaitingForProviderID", f"{external}: spec.providerID is empty")
        return
    _take(draft, host)


def is_provisioned(draft: Draft) -> bool:
    """Whether the host was made."""
    return draft.status.initialization.infrastructure_provisioned is True


def _not_found(draft: Draft, external: External) -> None:
    if draft.is_deleting and external.is_missing:
        return
    if external.is_missing and is_provisioned(draft):
        reference = draft.spec.infrastructure_ref
        name = f"{draft.metadata.namespace}/{reference.name}"
        gone = "has been deleted after provisioning was completed"
        draft.fail(INVALID_CONFIGURATION, f"Machine infrastructure resource {reference.kind} {name} {gone}")
    draft.wait("InfrastructureNotFound", str(external))


def _take(draft: Draft, host: InfrastructureMachine) -> None:
    # The API would refuse the whole status for an address that is none.
    addresses = [
        MachineAddress(type=one.type, address=one.address)
        for one in host.addresses
        if one.type in _ADDRESS_TYPES and 0 < len(one.address) <= ADDRESS_LIMIT
    ]
    domain = text_at(host.body, "spec", "failureDomain")
    where = text_at(host.body, "status", "failureDomain")
    draft.spec = replace(draft.spec, provider_id=host.provider_id, failure_domain=domain or draft.spec.failure_domain)
    draft.status = replace(
        draft.status,
        addresses=addresses or draft.status.addresses,
        failure_domain=where or draft.status.failure_domain,
        initialization=replace(draft.status.initialization, infrastructure_provisioned=True),
    )
