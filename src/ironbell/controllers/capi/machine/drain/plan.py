"""The pods of a node that are drained now, and those that are drained later: only the lowest order is evicted.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain/drain.go (EvictPods, ConditionMessage).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbell.base.listing import listed
from ironbell.controllers.capi.machine.drain.pods import Outcome, PodView
from ironbell.controllers.capi.machine.drain.treatment import Behavior, Treatment

BUDGET_REJECTION = "cannot evict pod as it would violate the pod's disruption budget."
"""Begin of the message about an eviction that a PodDisruptionBudget rejects (the API capitalizes its first letter)."""
NOT_REMOVED = "deletionTimestamp set, but still not removed from the Node"
FAILURES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The pods of a node, by their treatment. All in the order of their names."""

    evict: tuple[PodView, ...] = ()
    evict_later: tuple[PodView, ...] = ()
    ending: tuple[PodView, ...] = ()
    """Deleted, but not yet removed."""
    await_end: tuple[PodView, ...] = ()
    """Expected to complete by themselves."""
    await_end_later: tuple[PodView, ...] = ()
    skipped: tuple[PodView, ...] = ()

    @property
    def is_done(self) -> bool:
        """Return whether no pod is left that has to leave the node."""
        return not (self.evict or self.evict_later or self.ending or self.await_end or self.await_end_later)


def plan(treated: Sequence[tuple[PodView, Treatment]]) -> Plan:
    """Sort pods by their treatment.

    A pod that is being deleted still holds its order: higher orders wait until it is removed.
    """
    lowest = min((treatment.order for _, treatment in treated if treatment.behavior is not Behavior.SKIP), default=0)
    groups: dict[str, list[PodView]] = {}
    for pod, treatment in treated:
        now = treatment.order == lowest
        if treatment.behavior is Behavior.SKIP:
            group = "skipped"
        elif treatment.behavior is Behavior.WAIT_COMPLETED:
            group = "await_end" if now else "await_end_later"
        elif pod.deletion is not None:
            group = "ending"
        else:
            group = "evict" if now else "evict_later"
        groups.setdefault(group, []).append(pod)
    return Plan(**{group: tuple(pods) for group, pods in groups.items()})


def message(plan: Plan, outcomes: Mapping[str, Outcome], started: str) -> str:
    """The message about a drain in progress. `outcomes` are by uid of the pod."""
    lines = [f"Drain not completed yet (started at {started}):"]
    rejected: dict[str, list[PodView]] = {}
    ending = list(plan.ending)
    for pod in plan.evict:
        outcome = outcomes.get(pod.uid)
        if outcome is None:
            continue
        if outcome.error:
            rejected.setdefault(outcome.error, []).append(pod)
        else:
            ending.append(pod)
    if ending:
        lines.append(f"* {_pods(sorted(ending, key=str))}: {NOT_REMOVED}")
    errors = sorted(rejected)
    lines += [f"* {_pods(rejected[error])}: {_failure(error)}" for error in errors[:FAILURES_SHOWN]]
    others = sum(len(rejected[error]) for error in errors[FAILURES_SHOWN:])
    if others:
        lines.append(f"* {others} Pod{'s' if others > 1 else ''} with other issues")
    if plan.await_end:
        lines.append(f"* {_pods(plan.await_end)}: waiting for completion")
    after = "After above Pods have been removed from the Node,"
    if plan.evict_later:
        lines.append(f"{after} the following Pods will be evicted: {listed(plan.evict_later)}")
    if plan.await_end_later:
        following = listed(plan.await_end_later)
        lines.append(f"{after} waiting for the following Pods to complete without eviction: {following}")
    return "\n".join(lines)


def _pods(pods: Sequence[PodView]) -> str:
    return f"Pod{'s' if len(pods) > 1 else ''} {listed(pods)}"


def _failure(error: str) -> str:
    lowered = error[:1].lower() + error[1:]
    return lowered if lowered.startswith(BUDGET_REJECTION) else f"failed to evict Pod, {error}"
