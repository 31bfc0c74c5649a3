"""The treatment of each pod of a node when the node is drained: a chain of filters, of which the first match decides.

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
    """The treatment of a pod by draining; the values are those of a MachineDrainRule."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


@dataclass(frozen=True, slots=True)
class Treatment:
    """The treatment of a pod by draining, and its order: lower orders come first."""

    behavior: Behavior
    order: int = 0


class DrainError(IronbellError):
    """The treatment of some pods cannot be decided."""

    reason = "DrainingFailed"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The input of the decision besides the pod itself."""

    rules: Sequence[MachineDrainRule]
    """Rules that apply to the Machine, by name."""
    namespaces: Mapping[str, Mapping[str, str]]
    unreachable: bool
    now: datetime


SKIP: Final = Treatment(Behavior.SKIP)
WAIT: Final = Treatment(Behavior.WAIT_COMPLETED)
DRAIN: Final = Treatment(Behavior.DRAIN)


def rules_for_machine(
    rules: Sequence[MachineDrainRule], *, machine: Mapping[str, str], cluster: Mapping[str, str]
) -> tuple[MachineDrainRule, ...]:
    """The rules that apply to a Machine and a Cluster with these labels, in the order of their names.

    Raises:
        DrainError: a rule's selector is not valid.
    """

    def applies(rule: MachineDrainRule) -> bool:
        return not rule.spec.machines or any(
            matches(selectors.selector, machine) and matches(selectors.cluster_selector, cluster)
            for selectors in rule.spec.machines
        )

    applicable = []
    for rule in sorted(rules, key=lambda rule: rule.metadata.name):
        try:
            if applies(rule):
                applicable.append(rule)
        except SelectorError as error:
            raise DrainError(f"invalid selectors in MachineDrainRule {rule.metadata.name}: {error}") from error
    return tuple(applicable)


def treatments(
    node: PodsOfNode, rules: Sequence[MachineDrainRule], *, unreachable: bool, now: datetime
) -> list[tuple[PodView, Treatment]]:
    """The treatment of each pod, by namespace and name.

    Raises:
        DrainError: the treatment of some pods cannot be decided; the message names all of them.
    """
    circumstances = Circumstances(rules, node.namespaces, unreachable, now)
    decided: list[tuple[PodView, Treatment]] = []
    failed: dict[str, list[str]] = {}
    for pod in sorted(node.pods, key=str):
        try:
            decided.append((pod, _treatment(pod, circumstances)))
        except DrainError as error:
            failed.setdefault(error.message, []).append(str(pod))
    if failed:
        raise DrainError(
            "; ".join(f'Pods with error "{problem}": {", ".join(pods)}' for problem, pods in failed.items())
        )
    return decided


def _treatment(pod: PodView, circumstances: Circumstances) -> Treatment:
    return next((treatment for decide in _FILTERS if (treatment := decide(pod, circumstances)) is not None), DRAIN)


def _deleted(pod: PodView, circumstances: Circumstances) -> Treatment | None:
    """Skip a deleted pod of an unreachable node: no kubelet removes it."""
    is_deleted = pod.deletion is not None and circumstances.now - pod.deletion >= _DELETED_LONG_ENOUGH
    return SKIP if circumstances.unreachable and is_deleted else None


def _daemon(pod: PodView, _circumstances: Circumstances) -> Treatment | None:
    return SKIP if pod.of_daemon_set and not pod.finished else None


def _static(pod: PodView, _circumstances: Circumstances) -> Treatment | None:
    return SKIP if pod.mirror else None


def _labelled(pod: PodView, _circumstances: Circumstances) -> Treatment | None:
    """Treat the pod by its own label; an unknown value is ignored."""
    value = pod.labels.get(LABEL_DRAIN, "").casefold()
    if value == "skip":
        return SKIP
    return WAIT if value.replace("-", "", 1) == "waitcompleted" else None


def _ruled(pod: PodView, circumstances: Circumstances) -> Treatment | None:
    namespace = circumstances.namespaces.get(pod.namespace)
    if namespace is None:
        raise DrainError("Pod Namespace does not exist")
    for rule in circumstances.rules:
        try:
            if not _rule_applies_to_pod(rule, pod, namespace):
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


def _rule_applies_to_pod(rule: MachineDrainRule, pod: PodView, namespace: Mapping[str, str]) -> bool:
    return not rule.spec.pods or any(
        matches(selectors.selector, pod.labels) and matches(selectors.namespace_selector, namespace)
        for selectors in rule.spec.pods
    )


_FILTERS: Final[Sequence[Callable[[PodView, Circumstances], Treatment | None]]] = (
    _deleted,
    _daemon,
    _static,
    _labelled,
    _ruled,
)
