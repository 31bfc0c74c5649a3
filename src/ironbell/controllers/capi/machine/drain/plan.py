"""What is done with the pods of a node now, what later: only those of the lowest order are touched.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/drain/drain.go (EvictPods, ConditionMessage).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbell.controllers.capi.machine.drain.pods import Outcome, PodView, shortened
from ironbell.controllers.capi.machine.drain.treatment import Behavior, Treatment

BUDGET_REFUSAL = "cannot evict pod as it would violate the pod's disruption budget."
"""How a refusal for the sake of a PodDisruptionBudget begins (the API writes its first letter large)."""
STILL_THERE = "deletionTimestamp set, but still not removed from the Node"
FAILURES_TOLD = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """The pods of a node, by what is to happen to them. All in the order of their names."""

    evict: tuple[PodView, ...] = ()
    evict_later: tuple[PodView, ...] = ()
    ending: tuple[PodView, ...] = ()
    """Deleted, and still there."""
    await_end: tuple[PodView, ...] = ()
    """To end by themselves."""
    await_end_later: tuple[PodView, ...] = ()
    skipped: tuple[PodView, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether no pod is left that has to go."""
        return not (self.evict or self.evict_later or self.ending or self.await_end or self.await_end_later)


def plan(treated: Sequence[tuple[PodView, Treatment]]) -> Plan:
    """Sort pods by what is to happen to them.

    A pod that is being deleted still holds its order: higher ones wait until it is gone.
    """
    lowest = min((how.order for _, how in treated if how.behavior is not Behavior.SKIP), default=0)
    found: dict[str, list[PodView]] = {}
    for pod, how in treated:
        now = how.order == lowest
        if how.behavior is Behavior.SKIP:
            where = "skipped"
        elif how.behavior is Behavior.WAIT_COMPLETED:
            where = "await_end" if now else "await_end_later"
        elif pod.deletion is not None:
            where = "ending"
        else:
            where = "evict" if now else "evict_later"
        found.setdefault(where, []).append(pod)
    return Plan(**{where: tuple(pods) for where, pods in found.items()})


def message(plan: Plan, outcomes: Mapping[str, Outcome], started: str) -> str:
    """What is told while draining goes on. `outcomes` are by uid of the pod."""
    lines = [f"Drain not completed yet (started at {started}):"]
    refused: dict[str, list[PodView]] = {}
    ending = list(plan.ending)
    for pod in plan.evict:
        outcome = outcomes.get(pod.uid)
        if outcome is None:
            continue
        if outcome.error:
            refused.setdefault(outcome.error, []).append(pod)
        else:
            ending.append(pod)
    if ending:
        lines.append(f"* {_pods(sorted(ending, key=str))}: {STILL_THERE}")
    told = sorted(refused)
    lines += [f"* {_pods(refused[error])}: {_failure(error)}" for error in told[:FAILURES_TOLD]]
    others = sum(len(refused[error]) for error in told[FAILURES_TOLD:])
    if others:
        lines.append(f"* {others} Pod{'s' if others > 1 else ''} with other issues")
    if plan.await_end:
        lines.append(f"* {_pods(plan.await_end)}: waiting for completion")
    after = "After above Pods have been removed from the Node,"
    if plan.evict_later:
        lines.append(f"{after} the following Pods will be evicted: {shortened(plan.evict_later, 3)}")
    if plan.await_end_later:
        following = shortened(plan.await_end_later, 3)
        lines.append(f"{after} waiting for the following Pods to complete without eviction: {following}")
    return "\n".join(lines)


def _pods(pods: Sequence[PodView]) -> str:
    return f"Pod{'s' if len(pods) > 1 else ''} {shortened(pods, 3)}"


def _failure(error: str) -> str:
    lowered = error[:1].lower() + error[1:]
    return lowered if lowered.startswith(BUDGET_REFUSAL) else f"failed to evict Pod, {error}"
