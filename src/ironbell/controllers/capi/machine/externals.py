"""Objects of providers that belong to a Machine: whose they are, and what they say of failures. Pure.

They were made before the Machine existed, so they name its MachineSet or control plane as owner at first; from here on
the Machine controls them.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_phases.go (reconcileExternal).
"""

from __future__ import annotations

from typing import Final

from ironbell.api.cluster.cluster import Cluster
from ironbell.api.cluster.deprecated import LegacyCondition
from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.cluster.machineset import MACHINE_SET
from ironbell.api.cluster.names import LABEL_CLUSTER_NAME, LABEL_CONTROL_PLANE
from ironbell.api.meta import OwnerReference, to_builtin
from ironbell.contract.clusters.external import External
from ironbell.contract.conditions.legacy import legacy_conditions, legacy_false, legacy_mirror, legacy_true
from ironbell.contract.owners import group_of, is_same_owner, owner_reference, with_owner
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.kube.decision import MergePatch, patch

FOREIGN: Final = "is controlled by"
"""In the message about an object that somebody else controls."""


def take_over(draft: Draft, external: External, cluster: Cluster) -> str:
    """Make the Machine the controller of a provider's object that was found, and label it with the cluster's name.

    Returns why that cannot be; empty if it can.
    """
    _kind, obj = external.found
    references = [one for one in obj.metadata.owner_references if not _is_temporary(one, draft.machine, cluster)]
    controller = next((one for one in references if one.controller), None)
    own = owner_reference(MACHINE, draft.machine, controller=True)
    if controller is not None and not is_same_owner(controller, own):
        return f"{obj.kind} {obj.metadata.name} {FOREIGN} {controller.kind} {controller.name}"
    change = _change(external, with_owner(references, own), draft.spec.cluster_name)
    if change is not None:
        draft.owned.append(change)
    return ""


def note_failure(draft: Draft, external: External, reason: str, message: str) -> None:
    """Copy a failure that a provider of the older contract reports."""
    if not reason and not message:
        return
    _kind, obj = external.found
    told = (
        f'Failure detected from referenced resource {obj.api_version}, Kind={obj.kind} with name "{obj.metadata.name}"'
    )
    known = draft.older
    draft.fail(reason or known.failure_reason or "", f"{told}: {message}" if message else known.failure_message or "")


def _change(external: External, owners: list[OwnerReference], cluster_name: str) -> MergePatch | None:
    kind, obj = external.found
    metadata: dict[str, object] = {}
    if owners != obj.metadata.owner_references:
        metadata["ownerReferences"] = to_builtin(owners)
    if obj.metadata.labels.get(LABEL_CLUSTER_NAME) != cluster_name:
        metadata["labels"] = {LABEL_CLUSTER_NAME: cluster_name}
    return patch(kind, obj, {"metadata": metadata}, locked=True) if metadata else None


def _is_temporary(owner: OwnerReference, machine: Machine, cluster: Cluster) -> bool:
    """Whether an owner was named only because the Machine did not exist yet."""
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
    """The older condition that copies a provider's Ready, or tells a boolean of its contract."""
    _kind, obj = external.found
    fallback = legacy_true(target) if is_true else legacy_false(target, reason, severity)
    return legacy_mirror(legacy_conditions(obj), target, fallback=fallback)
