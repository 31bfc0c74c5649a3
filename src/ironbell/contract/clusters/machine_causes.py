"""Causes that keep Machines from being available, as conditions of their owners report them. Pure.

Only causes that do not end by themselves are reported: progress is on the Machine alone, so that it changes nothing
above. The lines have the form of upstream's conditions, `* Machine NAME: MESSAGE`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ironbell.api.cluster.machine import Machine
from ironbell.api.meta import Condition
from ironbell.contract.causes import Weight, heaviest, weight_of
from ironbell.contract.conditions.aggregate import named
from ironbell.contract.conditions.merge import indented
from ironbell.kube.conditions import find_condition
from ironbell.kube.finalizers import is_deleting

INSTALLATION_FAILED: Final = "InstallationFailed"
"""Reason of an infrastructure machine's Ready once no attempt to install the server is left."""
BOOTSTRAP_FAILED: Final = "BootstrapFailed"
"""Reason of BootstrapSucceeded once the host has reported that it failed."""
_TERMINAL: Final = {"InfrastructureReady": INSTALLATION_FAILED, "BootstrapSucceeded": BOOTSTRAP_FAILED}


def terminal_failure(machine: Machine) -> str:
    """Return why a Machine failed for good, as its providers report it; "" if it has not."""
    if machine.status.node_ref.name or is_deleting(machine):
        return ""
    for type_, reason in _TERMINAL.items():
        condition = find_condition(machine.status.conditions, type_)
        if condition is not None and (condition.status, condition.reason) == ("False", reason):
            return condition.message or reason
    return ""


def is_health_checked(machine: Machine) -> bool:
    """Return whether a MachineHealthCheck selects the Machine, so that it will be replaced."""
    return find_condition(machine.status.conditions, "HealthCheckSucceeded") is not None


POWERED_ON: Final = "PoweredOn"
"""Ours, on an infrastructure's machine and on its Machine: whether the server of a Machine that was installed is on."""
_SHOWN: Final = 3
_MOST_CHARACTERS: Final = 1024
_OF_PROVIDERS: Final = ("InfrastructureReady", POWERED_ON, "BootstrapConfigReady")
_HOLDS_DELETION: Final = frozenset(
    {"ForeignJob", "ForeignTemplate", "ForeignWorkflow", "HardwareHeld", "HardwareNotConfirmed"}
)
"""Reasons of an infrastructure's machine that is being deleted; others may be of the time before."""
_NODE_PROBLEMS: Final = frozenset({"NodeNotHealthy", "NodeHealthyUnknown"})


@dataclass(frozen=True, slots=True)
class Cause:
    """Reason why a Machine is not available."""

    message: str
    weight: Weight


def cause_of(machine: Machine) -> Cause | None:
    """Return the root cause of a Machine that is not available, or not deleted; None if it is under way."""
    if is_deleting(machine):
        condition = find_condition(machine.status.conditions, "InfrastructureReady")
        holds = condition is not None and condition.status == "False" and condition.reason in _HOLDS_DELETION
        return Cause(_message(condition), Weight.NEEDS_HELP) if condition is not None and holds else None
    return heaviest(_causes(machine), lambda cause: cause.weight)


def cause_lines(machines: Sequence[Machine]) -> list[str]:
    """Lines for a condition of the Machines' owner: heaviest cause first, Machines by cause."""
    causes = [(machine.metadata.name, cause) for machine in machines if (cause := cause_of(machine)) is not None]
    groups: dict[tuple[Weight, str], list[str]] = {}
    for name, cause in causes:
        groups.setdefault((cause.weight, cause.message), []).append(name)
    ordered = sorted(groups.items(), key=lambda group: (-group[0][0], -len(group[1]), min(group[1])))
    lines = [f"* {named('Machine', sorted(names))}:{indented(message)}" for (_, message), names in ordered[:_SHOWN]]
    rest = sum(len(names) for _, names in ordered[_SHOWN:])
    return [*lines, f"And {rest} {'Machine' if rest == 1 else 'Machines'} with other issues"] if rest else lines


def without_repeated_causes(lines: Sequence[str]) -> list[str]:
    """Leave out causes of Machines that an earlier line has already: two conditions may report the same one."""
    seen: set[tuple[str, ...]] = set()
    kept: list[str] = []
    for block in _blocks("\n".join(lines).split("\n")):
        text = tuple(line.strip() for line in block)
        if text in seen and text[0].startswith("* Machine"):
            continue
        seen.add(text)
        kept += block
    return kept


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Each cause of a Machine with the deeper lines below it, and each other line."""
    block: list[str] = []
    for line in lines:
        if block and block[0].lstrip().startswith("* Machine") and _depth(line) > _depth(block[0]):
            block.append(line)
            continue
        if block:
            yield block
        block = [line]
    if block:
        yield block


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _causes(machine: Machine) -> Iterator[Cause]:
    failure = terminal_failure(machine)
    if failure:
        yield Cause(_shortened(failure), Weight.NEEDS_HELP)
    conditions = machine.status.conditions
    for type_ in _OF_PROVIDERS:
        condition = find_condition(conditions, type_)
        if condition is not None and condition.status == "False" and weight_of(condition.reason) is Weight.NEEDS_HELP:
            yield Cause(_message(condition), Weight.NEEDS_HELP)
    node = find_condition(conditions, "NodeHealthy")
    if machine.status.node_ref.name and node is not None and node.reason in _NODE_PROBLEMS:
        yield Cause(_message(node), Weight.WAITING)


def _message(condition: Condition) -> str:
    return _shortened(condition.message or condition.reason)


def _shortened(message: str) -> str:
    return message if len(message) <= _MOST_CHARACTERS else f"{message[: _MOST_CHARACTERS - 1]}…"
