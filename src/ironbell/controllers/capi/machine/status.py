"""The status of a Machine: its phase, and the conditions about itself, which the other steps have not set.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go, machine_controller.go
(patchMachine).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ironbell.api.cluster.names import ANNOTATION_UPDATE_IN_PROGRESS
from ironbell.api.meta import Condition
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.conditions import Priority, Reasons, summary
from ironbell.contract.conditions.legacy import legacy_summary
from ironbell.contract.conditions.merge import priority_by_polarity
from ironbell.controllers.capi.machine.conditions import references
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy, MachineCondition, Phase, Reason
from ironbell.controllers.capi.machine.observed import Observed
from ironbell.controllers.capi.machine_templates import differences

LONG: Final = timedelta(minutes=15)
"""From then on a deletion is said to take long."""
_DRAINS_LONG: Final = timedelta(minutes=5)
_DELAYS: Final = (
    ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
    ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
    ("failed to evict Pod", "Pod eviction errors"),
    ("waiting for completion", "Pods not completed yet"),
)
"""What in the message of a drain tells of which cause."""
_GATES: Final = (
    MachineCondition.DELETING,
    MachineCondition.UPDATING,
    MachineCondition.BOOTSTRAP_CONFIG_READY,
    MachineCondition.INFRASTRUCTURE_READY,
    MachineCondition.NODE_HEALTHY,
    MachineCondition.HEALTH_CHECK_SUCCEEDED,
)
_NEGATIVE: Final = (MachineCondition.DELETING, MachineCondition.UPDATING)
_GONE: Final = {
    MachineCondition.BOOTSTRAP_CONFIG_READY: (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST),
    MachineCondition.INFRASTRUCTURE_READY: (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST),
    MachineCondition.NODE_HEALTHY: (Reason.NODE_DELETED, Reason.NODE_DOES_NOT_EXIST),
}
"""What is as it should be while the Machine is being deleted."""
_CONTROL_PLANE_PARTS: Final = ("* APIServer", "* ControllerManager", "* Scheduler")


def conclude(draft: Draft, observed: Observed) -> None:
    """Set conditions and phase from all that the other steps have found."""
    references.set_bootstrap_ready(draft, observed)
    references.set_infrastructure_ready(draft, observed)
    references.set_powered_on(draft, observed)
    references.set_bootstrap_condition(draft, observed)
    set_deleting(draft)
    set_updating(draft)
    set_up_to_date(draft, observed)
    set_ready(draft)
    set_available(draft)
    set_legacy_ready(draft)
    set_phase(draft)
    draft.observe_generation()


def set_phase(draft: Draft) -> None:
    """Set the phase, and when it changed."""
    phase = _phase(draft)
    if phase != draft.status.phase:
        draft.status = replace(draft.status, phase=phase, last_updated=rfc3339(draft.now))


def _phase(draft: Draft) -> str:
    initialization = draft.status.initialization
    updating = draft.condition(MachineCondition.UPDATING)
    if draft.is_deleting:
        return Phase.DELETING
    if updating is not None and updating.status == "True":
        return Phase.UPDATING
    if draft.status.node_ref.name and initialization.infrastructure_provisioned:
        return Phase.RUNNING
    if draft.spec.provider_id:
        return Phase.PROVISIONED
    if initialization.bootstrap_data_secret_created and not initialization.infrastructure_provisioned:
        return Phase.PROVISIONING
    return draft.status.phase or Phase.PENDING


def set_deleting(draft: Draft) -> None:
    """How far the deletion is."""
    if not draft.is_deleting:
        draft.set(MachineCondition.DELETING, "False", Reason.NOT_DELETING)
    elif draft.deleting is not None:
        draft.set(MachineCondition.DELETING, "True", *draft.deleting)


def set_updating(draft: Draft) -> None:
    """Whether somebody changes the host in place."""
    if ANNOTATION_UPDATE_IN_PROGRESS in draft.metadata.annotations:
        draft.set(MachineCondition.UPDATING, "True", Reason.IN_PLACE_UPDATING, "In-place update in progress")
    else:
        draft.set(MachineCondition.UPDATING, "False", Reason.NOT_UPDATING)


def set_up_to_date(draft: Draft, observed: Observed) -> None:
    """Whether the Machine is what its MachineDeployment asks for; of others their owner tells that."""
    current, desired = observed.machine_set, observed.machine_deployment
    if current is None or desired is None:
        return
    kind = MachineCondition.UP_TO_DATE
    found = differences(current.spec.template, desired.spec.template)
    after, made = desired.spec.rollout.after, current.metadata.creation_timestamp
    if after and made:
        rollout = parse_rfc3339(after)
        if rollout > draft.now:
            draft.requeue_after(rollout - draft.now + timedelta(seconds=1))
        elif parse_rfc3339(made) < rollout:
            found.append("MachineDeployment spec.rolloutAfter expired")
    updating, runs = draft.condition(MachineCondition.UPDATING), _kubelet(draft)
    if found:
        draft.set(kind, "False", Reason.NOT_UP_TO_DATE, "\n".join(f"* {line}" for line in found))
    elif updating is not None and updating.status == "True":
        draft.set(kind, "False", Reason.UPDATING, f"* {updating.message or 'In-place update in progress'}")
    elif runs and runs != draft.spec.version:
        wanted = f"* Node.status.nodeInfo.kubeletVersion {runs}, {draft.spec.version} required"
        draft.set(kind, "False", Reason.UPDATING, wanted)
    else:
        draft.set(kind, "True", Reason.UP_TO_DATE)


def set_ready(draft: Draft) -> None:
    """What all that counts adds up to."""
    gates = draft.spec.readiness_gates
    negative = [*_NEGATIVE, *(gate.condition_type for gate in gates if gate.polarity == "Negative")]
    usual = priority_by_polarity(negative)

    def priority(condition: Condition) -> Priority:
        gone = draft.is_deleting and condition.reason in _GONE.get(condition.type, ())  # type: ignore[call-overload]
        return Priority.INFO if gone else usual(condition)

    new = summary(
        draft.status.conditions,
        MachineCondition.READY,
        [*_GATES, *(gate.condition_type for gate in gates)],
        ignore_if_missing=(MachineCondition.HEALTH_CHECK_SUCCEEDED,),
        overrides=_shortened_deletion(draft),
        reason=Reasons(Reason.NOT_READY, Reason.READY_UNKNOWN, Reason.READY),
        priority=priority,
        transform=_joined_control_plane,
    )
    draft.put(new)


def set_available(draft: Draft) -> None:
    """Whether the Machine has been ready for long enough."""
    kind, ready = MachineCondition.AVAILABLE, draft.condition(MachineCondition.READY)
    if ready is None or ready.status != "True" or not ready.last_transition_time:
        draft.set(kind, "False", Reason.NOT_READY)
        return
    wanted = timedelta(seconds=draft.spec.min_ready_seconds or 0)
    lasts = draft.now - parse_rfc3339(ready.last_transition_time)
    if lasts >= wanted:
        draft.set(kind, "True", Reason.AVAILABLE)
    else:
        draft.set(kind, "False", Reason.WAITING_FOR_MIN_READY_SECONDS)
        draft.requeue_after(wanted - lasts)


def set_legacy_ready(draft: Draft) -> None:
    """The older Ready; it counts steps until the host is there."""
    steps = (Legacy.BOOTSTRAP_READY, Legacy.INFRASTRUCTURE_READY)
    order = (
        Legacy.INFRASTRUCTURE_READY,
        Legacy.BOOTSTRAP_READY,
        Legacy.HEALTH_CHECK_SUCCEEDED,
        Legacy.OWNER_REMEDIATED,
        Legacy.DRAINING_SUCCEEDED,
    )
    counts = not draft.is_deleting and not draft.spec.provider_id
    draft.put_legacy(
        legacy_summary(draft.older.conditions, types=order, step_counter=counts, step_counter_if_only=steps)
    )


def _kubelet(draft: Draft) -> str:
    return draft.status.node_info.kubelet_version if draft.status.node_info is not None else ""


def _shortened_deletion(draft: Draft) -> Sequence[Condition]:
    """The deletion as Ready tells it: in few words, so that many Machines say the same."""
    found, since = draft.condition(MachineCondition.DELETING), draft.machine.metadata.deletion_timestamp
    if found is None or since is None:
        return ()
    lasts = draft.now - parse_rfc3339(since)
    message = f"Machine deletion in progress, stage: {found.reason}"
    if lasts > LONG:
        message = f"Machine deletion in progress since more than 15m, stage: {found.reason}"
        started = draft.deletion.node_drain_start_time
        if found.reason == Reason.DRAINING_NODE and started and draft.now - parse_rfc3339(started) > _DRAINS_LONG:
            causes = [cause for mark, cause in _DELAYS if mark in found.message]
            message += f", delay likely due to {', '.join(causes)}" if causes else ""
    else:
        draft.requeue_after(LONG - lasts + timedelta(seconds=1))
    return (Condition(type=found.type, status="True", reason=Reason.DELETING, message=message),)


def _joined_control_plane(lines: list[str]) -> list[str]:
    """The parts of a control plane in one line, if they all say the same."""
    found = [line for line in lines if _is_part(line)]
    said = {line.partition(":")[2] for line in found}
    if len(found) < 2 or len(said) > 1:
        return lines
    first = lines.index(found[0])
    joined = f"* Control plane components:{said.pop()}"
    return [
        joined if place == first else line for place, line in enumerate(lines) if place == first or line not in found
    ]


def _is_part(line: str) -> bool:
    name, colon, _ = line.partition(":")
    return bool(colon) and (name.startswith(_CONTROL_PLANE_PARTS) or name == "* EtcdPodHealthy")
