"""Objects of providers that belong to a Machine: the bootstrap config and the infrastructure. Pure.

They are created before the Machine, so at first their MachineSet or control plane owns them; then the Machine controls
them. The bootstrap step waits for the provider's Secret, and the infrastructure step for the provisioned host.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_phases.go (reconcileExternal,
reconcileBootstrap, reconcileInfrastructure).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.common import MachineAddress, MachineAddressType
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machineset import MACHINE_SET
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.contract.clusters.bootstrap import BootstrapConfig
from ironbell.contract.clusters.external import External
from ironbell.contract.clusters.infrastructure import InfrastructureMachine
from ironbell.contract.conditions.legacy import INFO, legacy_conditions, legacy_false, legacy_mirror, legacy_true
from ironbell.contract.fields import text_at
from ironbell.contract.owners import group_of, is_same_owner, owner_reference, with_owner
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason
from ironbell.kube.decision import MergePatch, patch

FOREIGN: Final = "is controlled by"
"""Part of the message about an object that another owner controls."""


def take_over(draft: Draft, external: External, cluster: Cluster) -> str:
    """Make the Machine the controller of an existing provider's object, and label the object with the cluster's name.

    Returns the reason why that cannot be done; empty if it is done.
    """
    _kind, obj = external.kind_and_object
    references = [
        reference for reference in obj.metadata.owner_references if not _is_temporary(reference, draft.machine, cluster)
    ]
    controller = next((reference for reference in references if reference.controller), None)
    machine_reference = owner_reference(MACHINE, draft.machine, controller=True)
    if controller is not None and not is_same_owner(controller, machine_reference):
        return f"{obj.kind} {obj.metadata.name} {FOREIGN} {controller.kind} {controller.name}"
    draft.owned.append(_change(external, with_owner(references, machine_reference), draft.spec.cluster_name))
    return ""


def record_failure(draft: Draft, external: External, reason: str, message: str) -> None:
    """Copy a failure that a provider of the older contract reports."""
    if not reason and not message:
        return
    _kind, obj = external.kind_and_object
    failure = (
        f'Failure detected from referenced resource {obj.api_version}, Kind={obj.kind} with name "{obj.metadata.name}"'
    )
    known = draft.older
    draft.fail(
        reason or known.failure_reason or "", f"{failure}: {message}" if message else known.failure_message or ""
    )


def _change(external: External, owners: list[OwnerReference], cluster_name: str) -> MergePatch | None:
    kind, obj = external.kind_and_object
    metadata: dict[str, object] = {}
    if owners != obj.metadata.owner_references:
        metadata["ownerReferences"] = to_builtin(owners)
    if obj.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster_name:
        metadata["labels"] = {LABEL_CLUSTER_NAME: cluster_name}
    return patch(kind, obj, {"metadata": metadata}, locked=True) if metadata else None


def _is_temporary(owner: OwnerReference, machine: Machine, cluster: Cluster) -> bool:
    """Return whether an owner was set only because the Machine did not exist yet."""
    if (group_of(owner.api_version), owner.kind) == (MACHINE_SET.group, MACHINE_SET.kind):
        return True
    reference = cluster.spec.control_plane_ref
    return LABEL_CONTROL_PLANE in machine.metadata.labels and (group_of(owner.api_version), owner.kind) == (
        reference.api_group,
        reference.kind,
    )


def mirrored_legacy(
    external: External, target: str, *, is_true: bool, reason: str, severity: str
) -> LegacyCondition | None:
    """The v1beta1 condition that copies a provider's Ready, or reports a boolean of its contract."""
    _kind, obj = external.kind_and_object
    fallback = legacy_true(target) if is_true else legacy_false(target, reason, severity)
    return legacy_mirror(legacy_conditions(obj), target, fallback=fallback)


def reconcile_bootstrap(draft: Draft, external: External, cluster: Cluster) -> None:
    """Bring the bootstrap forward. A Machine whose user set the Secret waits for nothing."""
    if not external.exists:
        if not (draft.is_deleting and external.is_missing):
            draft.wait("BootstrapConfigNotFound", str(external))
        return
    draft.bootstrap_problem = take_over(draft, external, cluster)
    if draft.bootstrap_problem:
        draft.wait("BootstrapConfigUnusable", draft.bootstrap_problem)
        return
    config = BootstrapConfig.of(external)
    record_failure(draft, external, config.failure_reason, config.failure_message)
    if draft.spec.bootstrap.data_secret_name is not None:
        _created(draft)
        draft.put_legacy(legacy_true(Legacy.BOOTSTRAP_READY))
        return
    created = config.data_secret_created
    reason = LegacyReason.DELETING if draft.is_deleting else LegacyReason.WAITING_FOR_DATA_SECRET
    draft.put_legacy(mirrored_legacy(external, Legacy.BOOTSTRAP_READY, is_true=created, reason=reason, severity=INFO))
    if external.is_deleting:
        return
    if not created:
        draft.wait("WaitingForBootstrapData", f"{external}: {config.data_secret_created_field} is not true yet")
        return
    if not config.data_secret_name:
        draft.bootstrap_problem = f"{external}: status.dataSecretName is empty"
        draft.wait("BootstrapConfigUnusable", draft.bootstrap_problem)
        return
    bootstrap = replace(draft.spec.bootstrap, data_secret_name=config.data_secret_name)
    draft.spec = replace(draft.spec, bootstrap=bootstrap)
    _created(draft)


def _created(draft: Draft) -> None:
    initialization = replace(draft.status.initialization, bootstrap_data_secret_created=True)
    draft.status = replace(draft.status, initialization=initialization)


INVALID_CONFIGURATION = "InvalidConfiguration"
"""Reason in the older API for a host that was deleted."""
ADDRESS_LIMIT: Final = 256
_ADDRESS_TYPES: Final = frozenset(MachineAddressType)


def reconcile_infrastructure(draft: Draft, external: External, cluster: Cluster) -> None:
    """Bring the infrastructure forward. Once provisioned it stays so, whatever its provider reports later."""
    if not external.exists:
        _wait_for_infrastructure(draft, external)
        return
    draft.infrastructure_problem = take_over(draft, external, cluster)
    if draft.infrastructure_problem:
        draft.wait("InfrastructureUnusable", draft.infrastructure_problem)
        return
    host = InfrastructureMachine.of(external)
    record_failure(draft, external, host.failure_reason, host.failure_message)
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
    _copy_host(draft, host)


def is_provisioned(draft: Draft) -> bool:
    """Return whether the host was provisioned."""
    return draft.status.initialization.infrastructure_provisioned is True


def _wait_for_infrastructure(draft: Draft, external: External) -> None:
    if draft.is_deleting and external.is_missing:
        return
    if external.is_missing and is_provisioned(draft):
        reference = draft.spec.infrastructure_ref
        name = f"{draft.metadata.namespace}/{reference.name}"
        event = "has been deleted after provisioning was completed"
        draft.fail(INVALID_CONFIGURATION, f"Machine infrastructure resource {reference.kind} {name} {event}")
    draft.wait("InfrastructureNotFound", str(external))


def _copy_host(draft: Draft, host: InfrastructureMachine) -> None:
    # The API would reject the whole status for one invalid address.
    addresses = [
        MachineAddress(type=address.type, address=address.address)
        for address in host.addresses
        if address.type in _ADDRESS_TYPES and 0 < len(address.address) <= ADDRESS_LIMIT
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
