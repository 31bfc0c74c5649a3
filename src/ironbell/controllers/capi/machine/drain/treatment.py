"""How each pod of a node is treated when the node is drained: a chain of filters, the first that decides wins.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain/filters.go. Its warnings (a pod with local storage,
a pod without a controller) only go to a log there, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from ironbell.api.cluster.machinedrainrule import MachineDrainRule
from ironbell.api.cluster.names import LABEL_DRAIN
from ironbell.base.errors import IronbellError
from ironbell.base.labels import SelectorError
from ironbell.contract.selectors import matches
from ironbell.controllers.capi.machine.drain.pods import PodsOfNode, PodView

_DELETED_LONG_ENOUGH: Final = timedelta(seconds=2)
"""On an unreachable node: whole seconds since the deletion are more than one."""


class Behavior(Enum):
    """What draining does with a pod; the values are those of a MachineDrainRule."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


@dataclass(frozen=True, slots=True)
class Treatment:
    """What draining does with a pod, and when: lower orders come first."""

    behavior: Behavior
    order: int = 0


class DrainError(IronbellError):
    """It cannot be told how some pods are to be treated."""

    reason = "DrainingFailed"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides besides the pod itself."""

    rules: Sequence[MachineDrainRule]
    """Those that concern the Machine, by name."""
    namespaces: Mapping[str, Mapping[str, str]]
    unreachable: bool
    now: datetime


SKIP: Final = Treatment(Behavior.SKIP)
WAIT: Final = Treatment(Behavior.WAIT_COMPLETED)
DRAIN: Final = Treatment(Behavior.DRAIN)


def rules_for_machine(
    rules: Sequence[MachineDrainRule], *, machine: Mapping[str, str], cluster: Mapping[str, str]
) -> tuple[MachineDrainRule, ...]:
    """The rules that concern a Machine with these labels in a Cluster with those, in the order they are tried.

    Raises:
        DrainError: a rule's selector is none.
    """

    def concerns(rule: MachineDrainRule) -> bool:
        return not rule.spec.machines or any(
            matches(one.selector, machine) and matches(one.cluster_selector, cluster) for one in rule.spec.machines
        )

    found = []
    for rule in sorted(rules, key=lambda rule: rule.metadata.name):
        try:
            if concerns(rule):
                found.append(rule)
        except SelectorError as error:
            raise DrainError(f"invalid selectors in MachineDrainRule {rule.metadata.name}: {error}") from error
    return tuple(found)


def treatments(
    node: PodsOfNode, rules: Sequence[MachineDrainRule], *, unreachable: bool, now: datetime
) -> list[tuple[PodView, Treatment]]:
    """How each pod is treated, by namespace and name.

    Raises:
        DrainError: some pods cannot be judged; all of them are named.
    """
    around = Circumstances(rules, node.namespaces, unreachable, now)
    decided: list[tuple[PodView, Treatment]] = []
    failed: dict[str, list[str]] = {}
    for pod in sorted(node.pods, key=str):
        try:
            decided.append((pod, _treatment(pod, around)))
        except DrainError as error:
            failed.setdefault(error.message, []).append(str(pod))
    if failed:
        raise DrainError("; ".join(f'Pods with error "{why}": {", ".join(pods)}' for why, pods in failed.items()))
    return decided


def _treatment(pod: PodView, around: Circumstances) -> Treatment:
    return next((found for judge in _FILTERS if (found := judge(pod, around)) is not None), DRAIN)


def _deleted(pod: PodView, around: Circumstances) -> Treatment | None:
    """On an unreachable node nobody ends a pod: it counts as gone."""
    gone = pod.deletion is not None and around.now - pod.deletion >= _DELETED_LONG_ENOUGH
    return SKIP if around.unreachable and gone else None


def _daemon(pod: PodView, _around: Circumstances) -> Treatment | None:
    return SKIP if pod.of_daemon_set and not pod.finished else None


def _static(pod: PodView, _around: Circumstances) -> Treatment | None:
    return SKIP if pod.mirror else None


def _labelled(pod: PodView, _around: Circumstances) -> Treatment | None:
    """The pod's own label; a value that is not known says nothing."""
    value = pod.labels.get(LABEL_DRAIN, "").casefold()
    if value == "skip":
        return SKIP
    return WAIT if value.replace("-", "", 1) == "waitcompleted" else None


def _ruled(pod: PodView, around: Circumstances) -> Treatment | None:
    namespace = around.namespaces.get(pod.namespace)
    if namespace is None:
        raise DrainError("Pod Namespace does not exist")
    for rule in around.rules:
        try:
            if not _rule_concerns_pod(rule, pod, namespace):
                continue
        except SelectorError as error:
            raise DrainError(f"invalid selectors in MachineDrainRule {rule.metadata.name}: {error}") from error
        drain = rule.spec.drain
        try:
            behavior = Behavior(drain.behavior)
        except ValueError:
            name = rule.metadata.name
            raise DrainError(f'MachineDrainRule "{name}" has unknown spec.drain.behavior: "{drain.behavior}"') from None
        return Treatment(behavior, drain.order or 0) if behavior is Behavior.DRAIN else Treatment(behavior)
    return None


def _rule_concerns_pod(rule: MachineDrainRule, pod: PodView, namespace: Mapping[str, str]) -> bool:
    return not rule.spec.pods or any(
        matches(one.selector, pod.labels) and matches(one.namespace_selector, namespace) for one in rule.spec.pods
    )


_FILTERS: Final[Sequence[Callable[[PodView, Circumstances], Treatment | None]]] = (
    _deleted,
    _daemon,
    _static,
    _labelled,
    _ruled,
)
