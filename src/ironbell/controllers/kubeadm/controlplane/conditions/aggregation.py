"""Aggregation of the conditions of Machines on their control plane: only problems are listed. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/workload_cluster_conditions.go
(aggregateConditionsFromMachinesToKCP, aggregateV1Beta1ConditionsFromMachinesToKCP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbell.api.cluster.machine import Machine
from ironbell.base.listing import listed
from ironbell.contract.conditions.legacy import legacy_conditions
from ironbell.controllers.kubeadm.controlplane.conditions.marks import ERROR, INFO, WARNING, LegacyMark, Mark
from ironbell.controllers.kubeadm.controlplane.model import condition


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an aggregated condition, for its messages and reasons."""

    name: str
    """`control plane` or `etcd member`."""
    legacy_unhealthy: str
    legacy_unknown: str


HEALTHY, NOT_HEALTHY, HEALTH_UNKNOWN = "Healthy", "NotHealthy", "HealthUnknown"


def aggregate(machines: Sequence[Machine], types: Sequence[str], errors: Sequence[str], subject: Subject) -> Mark:
    """Return the v1beta2 condition of the control plane: False if there is any problem, else Unknown, else True."""
    reports = [_Report.of(machine, types) for machine in machines]
    message = "\n".join([*_grouped(reports), *(f"* {error}" for error in errors)])
    if errors or any(report.is_false for report in reports):
        return Mark("False", NOT_HEALTHY, message)
    if any(report.is_unknown for report in reports):
        return Mark("Unknown", HEALTH_UNKNOWN, message)
    if any(report.is_quiet for report in reports):
        return Mark("True", HEALTHY)
    return Mark("Unknown", HEALTH_UNKNOWN, f"No Machines reporting {subject.name} status")


@dataclass(frozen=True, slots=True)
class _Report:
    machine: str
    lines: tuple[str, ...]
    is_false: bool
    is_unknown: bool
    is_quiet: bool

    @classmethod
    def of(cls, machine: Machine, types: Sequence[str]) -> _Report:
        conditions = [c for c in (condition(machine, type_) for type_ in types) if c is not None]
        # before the host exists, Unknown is expected
        expected = bool(machine.spec.provider_id)
        reported = [c for c in conditions if c.status == "False" or (c.status == "Unknown" and expected)]
        lines = [f"  * {c.type}: {c.message or f'condition is {c.status}'}" for c in reported]
        if lines and len(conditions) > 1 and len({c.message for c in conditions}) == 1:
            lines = [f"  * Control plane components: {conditions[0].message}"]
        return cls(
            machine.metadata.name,
            tuple(lines),
            is_false=any(c.status == "False" for c in conditions),
            is_unknown=any(c.status == "Unknown" for c in reported),
            is_quiet=any(c not in reported for c in conditions),
        )


def _grouped(reports: Sequence[_Report]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for report in reports:
        if report.lines:
            groups.setdefault("\n".join(report.lines), []).append(report.machine)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), ",".join(item[1])))
    return [
        f"* Machine{'s' if len(machines) > 1 else ''} {listed(sorted(machines))}:\n{lines}"
        for lines, machines in ordered
    ]


def aggregate_legacy(
    machines: Sequence[Machine], types: Sequence[str], errors: Sequence[str], subject: Subject
) -> LegacyMark | None:
    """Return the v1beta1 condition of the control plane; None, if no Machine has one of them, leaves it unchanged."""
    by_severity: dict[str, set[str]] = {}
    for machine in machines:
        for condition_ in legacy_conditions(machine):
            if condition_.type in types:
                rank = condition_.severity if condition_.status == "False" else condition_.status
                by_severity.setdefault(rank, set()).add(machine.metadata.name)
    messages = list(errors)
    if failing := by_severity.get(ERROR):
        messages.append(f"Following Machines are reporting {subject.name} errors: {', '.join(sorted(failing))}")
    if messages:
        return LegacyMark("False", ERROR, subject.legacy_unhealthy, "; ".join(messages))
    for severity, noun in ((WARNING, "warnings"), (INFO, "info")):
        if concerned := by_severity.get(severity):
            message = f"Following Machines are reporting {subject.name} {noun}: {', '.join(sorted(concerned))}"
            return LegacyMark("False", severity, subject.legacy_unhealthy, message)
    if "True" in by_severity:
        return LegacyMark("True")
    if concerned := by_severity.get("Unknown"):
        message = f"Following Machines are reporting unknown {subject.name} status: {', '.join(sorted(concerned))}"
        return LegacyMark("Unknown", "", subject.legacy_unknown, message)
    return None
