"""What conditions of several Machines add up to on their control plane, pure; only trouble is told.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go
(aggregateConditionsFromMachinesToKCP, aggregateV1Beta1ConditionsFromMachinesToKCP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbell.api.cluster.machine import Machine
from ironbell.contract.conditions.legacy import legacy_conditions
from ironbell.controllers.kubeadm.controlplane.conditions.marks import ERROR, INFO, WARNING, LegacyMark, Mark
from ironbell.controllers.kubeadm.controlplane.model import condition, listed


@dataclass(frozen=True, slots=True)
class Words:
    """How one roll-up is told."""

    note: str
    """`control plane` or `etcd member`."""
    legacy_unhealthy: str
    legacy_unknown: str


HEALTHY, NOT_HEALTHY, HEALTH_UNKNOWN = "Healthy", "NotHealthy", "HealthUnknown"


def aggregate(machines: Sequence[Machine], types: Sequence[str], errors: Sequence[str], words: Words) -> Mark:
    """The v1beta2 condition of the control plane: False on any trouble, else Unknown, else True."""
    found = [_Found.of(machine, types) for machine in machines]
    message = "\n".join([*_grouped(found), *(f"* {error}" for error in errors)])
    if errors or any(one.is_false for one in found):
        return Mark("False", NOT_HEALTHY, message)
    if any(one.is_unknown for one in found):
        return Mark("Unknown", HEALTH_UNKNOWN, message)
    if any(one.is_quiet for one in found):
        return Mark("True", HEALTHY)
    return Mark("Unknown", HEALTH_UNKNOWN, f"No Machines reporting {words.note} status")


@dataclass(frozen=True, slots=True)
class _Found:
    machine: str
    lines: tuple[str, ...]
    is_false: bool
    is_unknown: bool
    is_quiet: bool

    @classmethod
    def of(cls, machine: Machine, types: Sequence[str]) -> _Found:
        conditions = [c for c in (condition(machine, type_) for type_ in types) if c is not None]
        # before there is a host, that nothing is known of it is no news
        expected = bool(machine.spec.provider_id)
        told = [c for c in conditions if c.status == "False" or (c.status == "Unknown" and expected)]
        lines = [f"  * {c.type}: {c.message or f'condition is {c.status}'}" for c in told]
        if lines and len(conditions) > 1 and len({c.message for c in conditions}) == 1:
            lines = [f"  * Control plane components: {conditions[0].message}"]
        return cls(
            machine.metadata.name,
            tuple(lines),
            is_false=any(c.status == "False" for c in conditions),
            is_unknown=any(c.status == "Unknown" for c in told),
            is_quiet=any(c not in told for c in conditions),
        )


def _grouped(found: Sequence[_Found]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for one in found:
        if one.lines:
            groups.setdefault("\n".join(one.lines), []).append(one.machine)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), ",".join(item[1])))
    return [
        f"* Machine{'s' if len(machines) > 1 else ''} {listed(sorted(machines))}:\n{lines}"
        for lines, machines in ordered
    ]


def aggregate_legacy(
    machines: Sequence[Machine], types: Sequence[str], errors: Sequence[str], words: Words
) -> LegacyMark | None:
    """The v1beta1 condition of the control plane; None leaves it as it is, when no Machine has any of them."""
    by_severity: dict[str, set[str]] = {}
    for machine in machines:
        for found in legacy_conditions(machine):
            if found.type in types:
                rank = found.severity if found.status == "False" else found.status
                by_severity.setdefault(rank, set()).add(machine.metadata.name)
    told = list(errors)
    if failing := by_severity.get(ERROR):
        told.append(f"Following Machines are reporting {words.note} errors: {', '.join(sorted(failing))}")
    if told:
        return LegacyMark("False", ERROR, words.legacy_unhealthy, "; ".join(told))
    for severity, noun in ((WARNING, "warnings"), (INFO, "info")):
        if concerned := by_severity.get(severity):
            message = f"Following Machines are reporting {words.note} {noun}: {', '.join(sorted(concerned))}"
            return LegacyMark("False", severity, words.legacy_unhealthy, message)
    if "True" in by_severity:
        return LegacyMark("True")
    if concerned := by_severity.get("Unknown"):
        message = f"Following Machines are reporting unknown {words.note} status: {', '.join(sorted(concerned))}"
        return LegacyMark("Unknown", "", words.legacy_unknown, message)
    return None
