"""The status of a Machine: its phase, and the conditions that the other steps have not set, among them the conditions
that mirror the providers' objects.

Source: kubernetes-sigs/cluster-api: core/reconcilers/machine/machine_controller_status.go, machine_controller.go
(patchMachine).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ironbell.api.cluster.machinedeployment import MachineDeployment
from ironbell.api.cluster.machineset import MachineSet
from ironbell.api.cluster.names import ANNOTATION_UPDATE_IN_PROGRESS
from ironbell.api.meta import Condition
from ironbell.base.clock import parse_rfc3339, rfc3339
from ironbell.contract.clusters.bootstrap import reported_failure
from ironbell.contract.clusters.external import External, State
from ironbell.contract.clusters.slow_deletions import STALE_AFTER, delay_causes
from ironbell.contract.conditions import Fallback, Priority, Reasons, conditions_of, mirror, summary
from ironbell.contract.conditions.legacy import legacy_summary
from ironbell.contract.conditions.merge import priority_by_polarity
from ironbell.contract.conditions.reading import NO_REASON
from ironbell.controllers.capi.machine.draft import Draft, replace
from ironbell.controllers.capi.machine.names import Legacy, MachineCondition, Phase, Reason
from ironbell.controllers.capi.machine.observed import Observed
from ironbell.controllers.capi.machines import differences
from ironbell.kube.conditions import find_condition

_GATES: Final = (
    MachineCondition.DELETING,
    MachineCondition.UPDATING,
    MachineCondition.BOOTSTRAP_CONFIG_READY,
    MachineCondition.INFRASTRUCTURE_READY,
    MachineCondition.NODE_HEALTHY,
    MachineCondition.HEALTH_CHECK_SUCCEEDED,
)
_NEGATIVE: Final = (MachineCondition.DELETING, MachineCondition.UPDATING)
_EXPECTED_IN_DELETION: Final = {
    MachineCondition.BOOTSTRAP_CONFIG_READY: (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST),
    MachineCondition.INFRASTRUCTURE_READY: (Reason.OBJECT_DELETED, Reason.OBJECT_DOES_NOT_EXIST),
    MachineCondition.NODE_HEALTHY: (Reason.NODE_DELETED, Reason.NODE_DOES_NOT_EXIST),
}
"""Reasons of conditions that are expected while the Machine is being deleted."""
_CONTROL_PLANE_PARTS: Final = ("* APIServer", "* ControllerManager", "* Scheduler")


def conclude(draft: Draft, observed: Observed) -> None:
    """Set conditions and phase from the results of the other steps."""
    set_bootstrap_ready(draft, observed.bootstrap)
    set_infrastructure_ready(draft, observed.infrastructure)
    set_powered_on(draft, observed.infrastructure)
    set_bootstrap_condition(draft, observed.infrastructure, observed.bootstrap)
    set_deleting(draft)
    set_updating(draft)
    if observed.machine_set is not None and observed.machine_deployment is not None:
        set_up_to_date(draft, observed.machine_set, observed.machine_deployment)
    set_ready(draft)
    set_available(draft)
    set_legacy_ready(draft)
    set_phase(draft)
    draft.observe_generation()


def set_phase(draft: Draft) -> None:
    """Set the phase, and the time of its change."""
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
    """Set the condition for the progress of the deletion."""
    if not draft.is_deleting:
        draft.set(MachineCondition.DELETING, "False", Reason.NOT_DELETING)
    elif draft.deleting is not None:
        draft.set(MachineCondition.DELETING, "True", *draft.deleting)


def set_updating(draft: Draft) -> None:
    """Set the condition for a change of the host in place."""
    if ANNOTATION_UPDATE_IN_PROGRESS in draft.metadata.annotations:
        draft.set(MachineCondition.UPDATING, "True", Reason.IN_PLACE_UPDATING, "In-place update in progress")
    else:
        draft.set(MachineCondition.UPDATING, "False", Reason.NOT_UPDATING)


def set_up_to_date(draft: Draft, current: MachineSet, desired: MachineDeployment) -> None:
    """Set the condition for whether the Machine matches its MachineDeployment."""
    kind = MachineCondition.UP_TO_DATE
    lines = differences(current.spec.template, desired.spec.template)
    after, created = desired.spec.rollout.after, current.metadata.creation_timestamp
    if after and created:
        rollout = parse_rfc3339(after)
        if rollout > draft.now:
            draft.requeue_after(rollout - draft.now + timedelta(seconds=1))
        elif parse_rfc3339(created) < rollout:
            lines.append("MachineDeployment spec.rolloutAfter expired")
    updating, runs = draft.condition(MachineCondition.UPDATING), _kubelet(draft)
    if lines:
        draft.set(kind, "False", Reason.NOT_UP_TO_DATE, "\n".join(f"* {line}" for line in lines))
    elif updating is not None and updating.status == "True":
        draft.set(kind, "False", Reason.UPDATING, f"* {updating.message or 'In-place update in progress'}")
    elif runs and runs != draft.spec.version:
        message = f"* Node.status.nodeInfo.kubeletVersion {runs}, {draft.spec.version} required"
        draft.set(kind, "False", Reason.UPDATING, message)
    else:
        draft.set(kind, "True", Reason.UP_TO_DATE)


def set_ready(draft: Draft) -> None:
    """Set the summary of all relevant conditions."""
    gates = draft.spec.readiness_gates
    negative = [*_NEGATIVE, *(gate.condition_type for gate in gates if gate.polarity == "Negative")]
    usual = priority_by_polarity(negative)

    def priority(condition: Condition) -> Priority:
        is_expected = draft.is_deleting and condition.reason in _EXPECTED_IN_DELETION.get(condition.type, ())  # type: ignore[call-overload]
        return Priority.INFO if is_expected else usual(condition)

    new = summary(
        draft.status.conditions,
        MachineCondition.READY,
        [*_GATES, *(gate.condition_type for gate in gates)],
        ignore_if_missing=(MachineCondition.HEALTH_CHECK_SUCCEEDED,),
        overrides=_shortened_deletion(draft),
        reason=Reasons(Reason.NOT_READY, Reason.READY_UNKNOWN, Reason.READY),
        priority=priority,
        transform=_with_joined_control_plane,
    )
    draft.put(new)


def set_available(draft: Draft) -> None:
    """Set the condition for whether the Machine has been ready for long enough."""
    kind, ready = MachineCondition.AVAILABLE, draft.condition(MachineCondition.READY)
    if ready is None or ready.status != "True" or not ready.last_transition_time:
        draft.set(kind, "False", Reason.NOT_READY)
        return
    minimum = timedelta(seconds=draft.spec.min_ready_seconds or 0)
    lasts = draft.now - parse_rfc3339(ready.last_transition_time)
    if lasts >= minimum:
        draft.set(kind, "True", Reason.AVAILABLE)
    else:
        draft.set(kind, "False", Reason.WAITING_FOR_MIN_READY_SECONDS)
        draft.requeue_after(minimum - lasts)


def set_legacy_ready(draft: Draft) -> None:
    """Set the v1beta1 Ready; it counts steps until the host is provisioned."""
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
    """The deletion in few words for Ready, so that many Machines have the same message."""
    deleting, since = draft.condition(MachineCondition.DELETING), draft.machine.metadata.deletion_timestamp
    if deleting is None or since is None:
        return ()
    lasts = draft.now - parse_rfc3339(since)
    message = f"Machine deletion in progress, stage: {deleting.reason}"
    if lasts > STALE_AFTER:
        message = f"Machine deletion in progress since more than 15m, stage: {deleting.reason}"
        started = draft.deletion.node_drain_start_time
        message += delay_causes(deleting.reason, deleting.message, started, draft.now)
    else:
        draft.requeue_after(STALE_AFTER - lasts + timedelta(seconds=1))
    return (Condition(type=deleting.type, status="True", reason=Reason.DELETING, message=message),)


def _with_joined_control_plane(lines: list[str]) -> list[str]:
    """The lines with the parts of a control plane as one line, if all have the same text."""
    parts = [line for line in lines if _is_part(line)]
    texts = {line.partition(":")[2] for line in parts}
    if len(parts) < 2 or len(texts) > 1:
        return lines
    first = lines.index(parts[0])
    joined = f"* Control plane components:{texts.pop()}"
    return [
        joined if place == first else line for place, line in enumerate(lines) if place == first or line not in parts
    ]


def _is_part(line: str) -> bool:
    name, colon, _ = line.partition(":")
    return bool(colon) and (name.startswith(_CONTROL_PLANE_PARTS) or name == "* EtcdPodHealthy")


_READY = "Ready"


def set_bootstrap_ready(draft: Draft, external: External | None) -> None:
    """Set the condition for the bootstrap data."""
    kind = MachineCondition.BOOTSTRAP_CONFIG_READY
    if external is None:
        draft.set(kind, "True", Reason.DATA_SECRET_PROVIDED)
        return
    created = draft.status.initialization.bootstrap_data_secret_created is True
    name = external.reference.kind
    if draft.bootstrap_problem or external.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        _unreadable(draft, kind, external, draft.bootstrap_problem)
    elif external.exists:
        _mirror(draft, kind, external, created, f"{name} status.initialization.dataSecretCreated is false")
    elif draft.is_deleting and created:
        draft.set(kind, "False", Reason.OBJECT_DELETED, f"{name} has been deleted")
    else:
        draft.set(kind, "False", Reason.OBJECT_DOES_NOT_EXIST, f"{name} does not exist")


def set_infrastructure_ready(draft: Draft, external: External) -> None:
    """Set the condition for the host."""
    kind = MachineCondition.INFRASTRUCTURE_READY
    provisioned = draft.status.initialization.infrastructure_provisioned is True
    name = external.reference.kind
    if draft.infrastructure_problem or external.state in (State.UNKNOWN, State.NO_SUCH_KIND):
        _unreadable(draft, kind, external, draft.infrastructure_problem)
    elif external.exists:
        _mirror(draft, kind, external, provisioned, f"{name} status.initialization.provisioned is false")
    elif provisioned:
        suffix = "" if draft.is_deleting else " while the Machine still exists"
        draft.set(kind, "False", Reason.OBJECT_DELETED, f"{name} has been deleted{suffix}")
    else:
        draft.set(kind, "False", Reason.OBJECT_DOES_NOT_EXIST, f"{name} does not exist")


def set_powered_on(draft: Draft, external: External) -> None:
    """Set the condition while the infrastructure's object reports that the Machine's server is powered off.

    Before the server is provisioned, and during its deletion, the provider itself powers it off and on.
    """
    kind = MachineCondition.POWERED_ON
    if external.exists and draft.status.initialization.infrastructure_provisioned and not draft.is_deleting:
        condition = find_condition(conditions_of(external.kind_and_object[1]), kind)
        if condition is not None and condition.status == "False":
            draft.put(condition)
            return
    if external.state is not State.UNKNOWN:
        draft.drop(kind)


def set_bootstrap_condition(draft: Draft, *externals: External | None) -> None:
    """Set the condition while a provider reports a failure; afterwards it is True for a node, and removed otherwise.

    Upstream has no such condition; there a failed bootstrap shows only in the message of BootstrapConfigReady.
    """
    kind = MachineCondition.BOOTSTRAP_SUCCEEDED
    # The infrastructure knows of it first.
    objects = [external.obj for external in externals if external is not None and external.obj is not None]
    failure = next((failure for obj in objects if (failure := reported_failure(obj))), "")
    if failure:
        draft.set(kind, "False", Reason.BOOTSTRAP_FAILED, failure)
    elif draft.condition(kind) is None:
        return
    elif draft.status.node_ref.name:
        draft.set(kind, "True", Reason.SUCCEEDED)
    else:
        draft.drop(kind)


def _mirror(draft: Draft, kind: str, external: External, is_true: bool, otherwise: str) -> None:
    _kind, obj = external.kind_and_object
    fallback = Fallback("True", Reason.READY) if is_true else Fallback("False", Reason.NOT_READY, otherwise)
    condition = mirror(conditions_of(obj), _READY, target=kind, fallback=fallback)
    if condition.status == "True" and condition.reason == NO_REASON:
        # An older provider's condition, which has no reason while it is True.
        condition = replace(condition, reason=Reason.READY)
    draft.put(condition)


def _unreadable(draft: Draft, kind: str, external: External, problem: str) -> None:
    """Report an object that cannot be read; an earlier condition stays until the cache is filled."""
    if not problem and external.state is State.UNKNOWN and not external.problem and draft.condition(kind) is not None:
        return
    draft.set(kind, "Unknown", Reason.INTERNAL_ERROR, problem or str(external))
