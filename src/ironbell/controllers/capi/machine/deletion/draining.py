"""Draining: the Node accepts no more pods, and its pods are evicted.

Only this process knows the outcomes of evictions (`Evicted`). After a restart pods are evicted again, which is
harmless.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (drainNode).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from ironbell.base.clock import parse_rfc3339
from ironbell.base.errors import IronbellError
from ironbell.contract.conditions.legacy import INFO, WARNING, legacy_true
from ironbell.controllers.capi.machine.deletion.nodework import nodes_now
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.drain import plan as plans
from ironbell.controllers.capi.machine.drain.plan import Plan
from ironbell.controllers.capi.machine.drain.pods import Outcome, PodsOfNode, PodView
from ironbell.controllers.capi.machine.drain.treatment import DrainError, Treatment, rules_for_machine, treatments
from ironbell.controllers.capi.machine.evictions import PodToEvict
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason, Reason
from ironbell.controllers.capi.machine.node import is_unreachable
from ironbell.controllers.capi.machine.observed import Deletion
from ironbell.controllers.capi.machine.performers import (
    CORDON,
    EVICT,
    EVICT_TIMEOUT_S,
    CordonArguments,
    EvictArguments,
)
from ironbell.controllers.capi.machine.queries import REFRESH_S, Evicted, PodsOn
from ironbell.kube.decision import Effect, Fact, Need
from ironbell.workload.queries import PUSHED_S, NodeByName, NodeView

RETRY: Final = timedelta(seconds=20)
"""Time between two evictions of the same pod."""
_UNREACHABLE_GRACE_S: Final = 1


def drain(draft: Draft, deletion: Deletion) -> bool:
    """Return whether the Node is drained; if not, the draft has the next actions."""
    started = draft.started("node_drain_start_time")
    if draft.legacy(Legacy.DRAINING_SUCCEEDED) is None:
        _report(draft, "Draining the node before deletion")
    progress = f"Drain not completed yet (started at {started}):"
    at, name = deletion.facts.cluster, draft.status.node_ref.name
    pods, evicted = PodsOn(at, name), Evicted(at, name)
    since = draft.metadata.deletion_timestamp
    deleted_at = parse_rfc3339(since) if since else None
    draft.need(Need(NodeByName(at, name), PUSHED_S, deleted_at), Need(pods, REFRESH_S), Need(evicted, PUSHED_S))
    problem = _problem(deletion.node) or _problem(deletion.pods)
    if problem is not None:
        _report_failure(draft, name, problem)
        return False
    if deletion.node is None or deletion.pods is None or deletion.evicted is None:
        _report_progress(draft, progress)
        return False
    node, pods_of_node = deletion.node.value, deletion.pods.value
    if node is None:
        # the cached facts may be from before the Node joined
        names = nodes_now(draft, deletion, deleted_at) if deleted_at is not None else ()
        if names is None or name in names:
            _report_progress(draft, progress)
            return False
        return True
    if pods_of_node is None or not deletion.pods.fresh(draft.now, REFRESH_S):
        _report_progress(draft, progress)
        return False
    try:
        plan = plans.plan(treated(draft, deletion, pods_of_node, unreachable=is_unreachable(node)))
    except DrainError as error:
        _report_failure(draft, name, error)
        return False
    if not node.unschedulable:
        draft.last.append(Effect(CORDON, CordonArguments(at, name), outdates=(NodeByName(at, name),)))
    if plan.is_done and node.unschedulable:
        _done(draft, name)
        return True
    known = {outcome.uid: outcome for outcome in deletion.evicted.value or ()}
    _evict(draft, plan, known, node, (pods, evicted))
    message = plans.message(plan, known, started)
    draft.deleting = (Reason.DRAINING_NODE, message)
    draft.wait(Reason.DRAINING_NODE, message)
    _report(draft, message)
    return False


def treated(
    draft: Draft, deletion: Deletion, pods: PodsOfNode, *, unreachable: bool
) -> list[tuple[PodView, Treatment]]:
    """The treatment of each pod of the Node.

    Raises:
        DrainError: a pod's treatment cannot be decided.
    """
    labels = deletion.cluster.metadata.labels if deletion.cluster is not None else {}
    rules = rules_for_machine(deletion.rules, machine=draft.metadata.labels, cluster=labels)
    return treatments(pods, rules, unreachable=unreachable, now=draft.now)


def _evict(
    draft: Draft, plan: Plan, known: dict[str, Outcome], node: NodeView, outdates: tuple[PodsOn, Evicted]
) -> None:
    """Evict the pods whose turn it is, and requeue for the next attempt."""
    due = []
    for pod in plan.evict:
        outcome = known.get(pod.uid)
        ready_in = timedelta() if outcome is None else outcome.at + RETRY - draft.now
        if ready_in <= timedelta():
            due.append(PodToEvict(pod.namespace, pod.name, pod.uid))
        else:
            draft.requeue_after(ready_in)
    if due:
        grace_s = _UNREACHABLE_GRACE_S if is_unreachable(node) else None
        arguments = EvictArguments(outdates[0].cluster, node.name, tuple(due), grace_s)
        draft.last.append(Effect(EVICT, arguments, timeout_s=EVICT_TIMEOUT_S, outdates=outdates))


def _problem(fact: Fact[Any] | None) -> IronbellError | None:
    return fact.error if fact is not None else None


def _report_failure(draft: Draft, node: str, error: IronbellError) -> None:
    message = f"Error draining Node: {error.message}"
    draft.deleting = (Reason.DRAINING_NODE, message)
    draft.wait(LegacyReason.DRAINING_FAILED, message)
    condition = draft.legacy(Legacy.DRAINING_SUCCEEDED)
    if condition is None or condition.message != error.message:
        draft.emit("FailedDrainNode", f'error draining Machine\'s node "{node}": {error.message}', warning=True)
    draft.legacy_false(Legacy.DRAINING_SUCCEEDED, LegacyReason.DRAINING_FAILED, WARNING, error.message)


def _done(draft: Draft, node: str) -> None:
    condition = draft.legacy(Legacy.DRAINING_SUCCEEDED)
    if condition is None or condition.status != "True":
        draft.put_legacy(legacy_true(Legacy.DRAINING_SUCCEEDED))
        draft.emit("SuccessfulDrainNode", f'success draining Machine\'s node "{node}"')


def _report_progress(draft: Draft, progress: str) -> None:
    """Report that the pods are being queried, unless an earlier report about the drain still stands."""
    conditions = draft.machine.status.conditions
    if not any(c.type == "Deleting" and c.reason == Reason.DRAINING_NODE for c in conditions):
        draft.deleting = (Reason.DRAINING_NODE, progress)
    draft.wait(Reason.DRAINING_NODE, progress)


def _report(draft: Draft, message: str) -> None:
    draft.legacy_false(Legacy.DRAINING_SUCCEEDED, LegacyReason.DRAINING, INFO, message)
