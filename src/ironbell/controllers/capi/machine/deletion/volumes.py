"""Waiting until the Node's volumes are detached, so that none is cut off during writes.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller.go (shouldWaitForNodeVolumes).
"""

from __future__ import annotations

from typing import Final

from ironbell.base.errors import IronbellError
from ironbell.contract.conditions.legacy import INFO, legacy_true
from ironbell.controllers.capi.machine.deletion.draining import treated
from ironbell.controllers.capi.machine.draft import Draft
from ironbell.controllers.capi.machine.drain.pods import PodsOfNode
from ironbell.controllers.capi.machine.drain.treatment import Behavior, DrainError
from ironbell.controllers.capi.machine.drain.volumes import attached, message
from ironbell.controllers.capi.machine.names import Legacy, LegacyReason, Reason
from ironbell.controllers.capi.machine.node import is_unreachable
from ironbell.controllers.capi.machine.observed import Deletion
from ironbell.controllers.capi.machine.queries import REFRESH_S, PodsOn, VolumesOn
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Need
from ironbell.workload.queries import PUSHED_S, NodeByName

_STAGE: Final = Reason.WAITING_FOR_VOLUME_DETACH


def detached(draft: Draft, deletion: Deletion) -> bool:
    """Return whether no volume is attached any more that has to be detached first."""
    started = draft.started("wait_for_node_volume_detach_start_time")
    at, name = deletion.facts.cluster, draft.status.node_ref.name
    if draft.legacy(Legacy.VOLUME_DETACH_SUCCEEDED) is None:
        text = "Waiting for node volumes to be detached"
        draft.legacy_false(Legacy.VOLUME_DETACH_SUCCEEDED, LegacyReason.WAITING_FOR_VOLUME_DETACH, INFO, text)
    progress = f"Waiting for Node volumes to be detached (started at {started})"
    draft.need(Need(NodeByName(at, name), PUSHED_S))
    known = deletion.node
    if known is not None and known.at is not None and (known.value is None or is_unreachable(known.value)):
        return _done(draft, name)
    draft.need(Need(VolumesOn(at, name), REFRESH_S))
    volumes = deletion.volumes
    problem = (known.error if known is not None else None) or (volumes.error if volumes is not None else None)
    if problem is not None:
        return _report_failure(draft, name, problem)
    if known is None or volumes is None or volumes.value is None or not volumes.fresh(draft.now, REFRESH_S):
        return _report_progress(draft, progress)
    if not volumes.value.in_status and not volumes.value.by_attachment:
        return _done(draft, name)
    draft.need(Need(PodsOn(at, name), REFRESH_S))
    pods = deletion.pods
    if pods is None or pods.value is None:
        return _report_progress(draft, progress)
    try:
        waiting_for = attached(volumes.value, ignored_claims=_ignored(draft, deletion, pods.value))
    except DrainError as error:
        return _report_failure(draft, name, error)
    if waiting_for.is_empty:
        return _done(draft, name)
    text = message(waiting_for, started)
    draft.deleting = (_STAGE, text)
    draft.wait(_STAGE, text)
    return False


def _ignored(draft: Draft, deletion: Deletion, pods: PodsOfNode) -> set[str]:
    """Claims of pods that draining leaves on the Node."""
    return {
        f"{pod.namespace}/{claim}"
        for pod, treatment in treated(draft, deletion, pods, unreachable=False)
        if treatment.behavior is Behavior.SKIP
        for claim in pod.claims
    }


def _done(draft: Draft, node: str) -> bool:
    condition = draft.legacy(Legacy.VOLUME_DETACH_SUCCEEDED)
    if condition is None or condition.status != "True":
        draft.put_legacy(legacy_true(Legacy.VOLUME_DETACH_SUCCEEDED))
        draft.emit("NodeVolumesDetached", f'success waiting for node volumes detaching Machine\'s node "{node}"')
    return True


def _report_progress(draft: Draft, progress: str) -> bool:
    condition = find_condition(draft.machine.status.conditions, "Deleting")
    if condition is None or condition.reason != _STAGE:
        draft.deleting = (_STAGE, progress)
    draft.wait(_STAGE, progress)
    return False


def _report_failure(draft: Draft, node: str, error: IronbellError) -> bool:
    text = f"Error waiting for volumes to be detached from Node: {error.message}"
    condition = find_condition(draft.machine.status.conditions, "Deleting")
    if condition is None or condition.message != text:
        event = f'error waiting for node volumes detaching, Machine\'s node "{node}": {error.message}'
        draft.emit("FailedWaitForVolumeDetach", event, warning=True)
    draft.deleting = (_STAGE, text)
    draft.wait(_STAGE, text)
    return False
