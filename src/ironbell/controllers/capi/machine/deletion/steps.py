"""The steps of a deletion, in their order; each reports that it is completed, or what it waits for.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (reconcileDelete).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from ironbell.api.cluster.machine import MACHINE
from ironbell.api.cluster.names import (
    ANNOTATION_EXCLUDE_NODE_DRAINING,
    ANNOTATION_EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH,
    FINALIZER_MACHINE,
    PREFIX_PRE_DRAIN_HOOK,
    PREFIX_PRE_TERMINATE_HOOK,
)
from ironbell.base.clock import parse_rfc3339
from ironbell.contract.clusters.external import External, State
from ironbell.contract.conditions.legacy import INFO, legacy_true
from ironbell.controllers.capi.machine.deletion import draining, volumes
from ironbell.controllers.capi.machine.deletion.nodework import NodeWork, node_left_by_host, node_work
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason, Reason
from ironbell.controllers.capi.machine.observed import Deletion
from ironbell.controllers.capi.machine.performers import DELETE_NODE, DELETE_TIMEOUT_S, DeleteNodeArguments
from ironbell.kube.decision import Effect, delete
from ironbell.kube.finalizers import remove_finalizer
from ironbell.workload.queries import NodeByName


def reconcile(draft: Draft, deletion: Deletion, host: External, bootstrap: External | None) -> None:
    """Bring the deletion forward, by as many steps as are completed."""
    if FINALIZER_MACHINE not in draft.metadata.finalizers:
        return
    # The reasons for waiting of a Machine that is not being deleted no longer apply.
    draft.waiting = None
    work = node_work(draft, deletion, host)
    if work is NodeWork.NOT_KNOWN:
        reason = f": {draft.waiting.message}" if draft.waiting is not None else ""
        _stage(draft, Reason.DELETING, f"Deletion started{reason}")
        return
    if work is NodeWork.DONE and not _node_is_free(draft, deletion, host):
        _requeue_at_limits(draft)
        return
    if _waits_for_hooks(draft, PREFIX_PRE_TERMINATE_HOOK):
        return
    if not _is_deleted(
        draft,
        host,
        Legacy.INFRASTRUCTURE_READY,
        Reason.WAITING_FOR_INFRASTRUCTURE_DELETION,
        draft.infrastructure_problem,
    ):
        return
    if bootstrap is not None and not _is_deleted(
        draft,
        bootstrap,
        Legacy.BOOTSTRAP_READY,
        Reason.WAITING_FOR_BOOTSTRAP_DELETION,
        draft.bootstrap_problem,
    ):
        return
    if work is NodeWork.NO_NODE:
        work = node_left_by_host(draft, deletion)
    if work is NodeWork.NOT_KNOWN:
        _stage(draft, Reason.DELETING_NODE, "The host was deleted. Checking that no Node joined before")
        return
    if work is NodeWork.DONE:
        _delete_node(draft, deletion)
    else:
        draft.deleting = (Reason.DELETION_COMPLETED, "Deletion completed")
    draft.last.append(remove_finalizer(MACHINE, draft.machine, FINALIZER_MACHINE))


def _node_is_free(draft: Draft, deletion: Deletion, host: External) -> bool:
    """Return whether pre-drain hooks, drain and volumes no longer need the Node."""
    if _waits_for_hooks(draft, PREFIX_PRE_DRAIN_HOOK):
        return False
    if _is_to_be_drained(draft, host) and not draining.drain(draft, deletion):
        return False
    return not _waits_for_volumes(draft, host) or volumes.detached(draft, deletion)


def _is_to_be_drained(draft: Draft, host: External) -> bool:
    limit_s, started = draft.spec.deletion.node_drain_timeout_seconds, draft.deletion.node_drain_start_time
    return _may_wait(draft, host, ANNOTATION_EXCLUDE_NODE_DRAINING) and not _has_expired(draft, limit_s, started)


def _waits_for_volumes(draft: Draft, host: External) -> bool:
    limit_s = draft.spec.deletion.node_volume_detach_timeout_seconds
    started = draft.deletion.wait_for_node_volume_detach_start_time
    excluded = ANNOTATION_EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH
    return _may_wait(draft, host, excluded) and not _has_expired(draft, limit_s, started)


def _may_wait(draft: Draft, host: External, excluded: str) -> bool:
    """Return whether waiting for the Node makes sense: its host exists, and is not being deleted."""
    return (
        excluded not in draft.metadata.annotations
        and draft.deletion.wait_for_pre_terminate_hook_start_time is None
        and host.exists
        and not host.is_deleting
    )


def _has_expired(draft: Draft, limit_s: int | None, started: str | None) -> bool:
    """Return whether the time for a step has passed. None and 0 mean no limit."""
    return bool(limit_s and started and draft.now - parse_rfc3339(started) >= timedelta(seconds=limit_s))


def _requeue_at_limits(draft: Draft) -> None:
    """Requeue for the time when a started step times out."""
    limits, steps = draft.spec.deletion, draft.deletion
    for limit_s, started in (
        (limits.node_drain_timeout_seconds, steps.node_drain_start_time),
        (limits.node_volume_detach_timeout_seconds, steps.wait_for_node_volume_detach_start_time),
    ):
        if limit_s and started and not _has_expired(draft, limit_s, started):
            draft.requeue_after(parse_rfc3339(started) + timedelta(seconds=limit_s) - draft.now)


def _waits_for_hooks(draft: Draft, prefix: str) -> bool:
    """Return whether annotations of other components hold the deletion at this point."""
    kind, step, reason, title = _HOOKS[prefix]
    hooks = sorted(key for key in draft.metadata.annotations if key.startswith(prefix))
    if not hooks:
        draft.put_legacy(legacy_true(kind))
        return False
    draft.started(step)
    draft.legacy_false(kind, LegacyReason.WAITING_EXTERNAL_HOOK, INFO)
    _stage(draft, reason, f"Waiting for {title} hooks to succeed (hooks: {','.join(hooks)})")
    return True


_HOOKS: Final = {
    PREFIX_PRE_DRAIN_HOOK: (
        Legacy.PRE_DRAIN_HOOK_SUCCEEDED,
        "wait_for_pre_drain_hook_start_time",
        Reason.WAITING_FOR_PRE_DRAIN_HOOK,
        "pre-drain",
    ),
    PREFIX_PRE_TERMINATE_HOOK: (
        Legacy.PRE_TERMINATE_HOOK_SUCCEEDED,
        "wait_for_pre_terminate_hook_start_time",
        Reason.WAITING_FOR_PRE_TERMINATE_HOOK,
        "pre-terminate",
    ),
}


def _is_deleted(draft: Draft, external: External, kind: Legacy, stage: Reason, problem: str) -> bool:
    """Return whether a provider's object was deleted; delete it if nothing has yet."""
    name = external.reference.kind
    if external.is_missing:
        draft.legacy_false(kind, LegacyReason.DELETED, INFO)
        return True
    if external.state is not State.EXISTS:
        _stage(draft, stage, f"Waiting for {name} to be deleted: {external}")
        return False
    if problem:
        # An object that another owner controls is not ours to delete.
        _stage(draft, stage, f"{name} is not deleted: {problem}")
        return False
    if not external.is_deleting:
        draft.last.append(delete(*external.kind_and_object))
    _stage(draft, stage, f"Waiting for {name} to be deleted")
    return False


def _delete_node(draft: Draft, deletion: Deletion) -> None:
    limit_s = draft.spec.deletion.node_deletion_timeout_seconds
    since = draft.machine.metadata.deletion_timestamp
    give_up_at = parse_rfc3339(since) + timedelta(seconds=limit_s) if since and limit_s else None
    node, at = draft.status.node_ref.name, deletion.facts.cluster
    arguments = DeleteNodeArguments(at, node, draft.machine.key, draft.machine.metadata.uid, give_up_at)
    known = deletion.node
    problem = f": {known.error.message}" if known is not None and known.error is not None else ""
    _stage(draft, Reason.DELETING_NODE, f"Deleting Node {node}{problem}")
    draft.last.append(Effect(DELETE_NODE, arguments, timeout_s=DELETE_TIMEOUT_S, outdates=(NodeByName(at, node),)))


def _stage(draft: Draft, reason: str, message: str) -> None:
    draft.deleting = (reason, message)
    draft.wait(reason, message)
