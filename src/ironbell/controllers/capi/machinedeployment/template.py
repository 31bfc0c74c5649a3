"""The fields of a template whose change creates new Machines, and the MachineSet of the current template.

Version, bootstrap, infrastructure and failure domain create new Machines; everything else is changed in place.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machinedeployment/mdutil/util.go (MachineTemplateUpToDate,
FindNewAndOldMachineSets).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.meta import to_builtin
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.hashing import stable_hash
from ironbell.controllers.capi.machines import differences
from ironbell.kube.decision import Fields

FOLLOWED_IN_PLACE = ("clusterName", "providerID", "minReadySeconds", "readinessGates", "deletion", "taints")


@dataclass(frozen=True, slots=True)
class SetsByTemplate:
    """The MachineSets of a MachineDeployment: the one of the current template, and all others."""

    new: MachineSet | None
    old: tuple[MachineSet, ...] = ()
    reason: str = ""
    """The reason why there is no new MachineSet."""

    @property
    def all(self) -> tuple[MachineSet, ...]:
        return (*([self.new] if self.new is not None else []), *self.old)


def rollout_fields(template_spec: object) -> Fields:
    """The fields of a template's spec whose change creates new Machines, as plain data."""
    spec: Fields = to_builtin(template_spec)
    return {name: value for name, value in spec.items() if name not in FOLLOWED_IN_PLACE}


def template_hash(deployment: MachineDeployment) -> int:
    """The hash in the label of MachineSets and Machines."""
    return stable_hash(rollout_fields(deployment.spec.template.spec))


def is_of_template(machine_set: MachineSet, deployment: MachineDeployment) -> bool:
    """Return whether a MachineSet's Machines match the template."""
    return not differences(machine_set.spec.template, deployment.spec.template)


def rollout_after(deployment: MachineDeployment) -> datetime | None:
    """The moment after which MachineSets from before it are old."""
    after = deployment.spec.rollout.after
    return parse_rfc3339(after) if after else None


def sets_by_template(deployment: MachineDeployment, sets: Sequence[MachineSet], now: datetime) -> SetsByTemplate:
    """Find the MachineSet of the template (the one with most replicas, then the oldest), and all others."""
    if not sets:
        return SetsByTemplate(None, (), "no MachineSets exist for the MachineDeployment")
    ordered = sorted(sets, key=_by_size)
    matching = [machine_set for machine_set in ordered if is_of_template(machine_set, deployment)]
    after = rollout_after(deployment)
    candidates = matching
    if after is not None and after <= now:
        candidates = [machine_set for machine_set in matching if _created(machine_set) >= after]
    if candidates:
        new = candidates[0]
        return SetsByTemplate(new, tuple(machine_set for machine_set in ordered if machine_set is not new))
    reason = "no MachineSet matches the template"
    if matching and after is not None:
        reason = f"no MachineSet was created after spec.rollout.after, {deployment.spec.rollout.after}"
    return SetsByTemplate(None, tuple(ordered), reason)


def _by_size(machine_set: MachineSet) -> tuple[int, str, str]:
    meta = machine_set.metadata
    return (-(machine_set.spec.replicas or 0), meta.creation_timestamp or "", meta.name)


def _created(machine_set: MachineSet) -> datetime:
    created = machine_set.metadata.creation_timestamp
    return parse_rfc3339(created) if created else datetime.max.replace(tzinfo=UTC)
