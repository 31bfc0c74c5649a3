"""Conditions of a control plane about its operations: rollout, scaling and deletion. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane/status.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ironbell.api.cluster.machine import Machine
from ironbell.base.listing import listed
from ironbell.contract.clusters.slow_deletions import stale_message
from ironbell.controllers.kubeadm.controlplane.conditions.marks import WARNING, LegacyMark, Mark
from ironbell.controllers.kubeadm.controlplane.machines.creating import Failed
from ironbell.controllers.kubeadm.controlplane.machines.preflight import Preflight
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, condition, names
from ironbell.controllers.kubeadm.controlplane.names import MachineCondition


def rolling_out(machines: Sequence[Machine]) -> Mark:
    """Return the condition RollingOut, with the reasons; a change of the version comes first."""
    outdated = [c for c in (condition(m, MachineCondition.UP_TO_DATE) for m in machines) if c and c.status == "False"]
    if not outdated:
        return Mark("False", "NotRollingOut")
    lines = {line for cause in outdated for line in cause.message.split("\n") if line}
    ordered = sorted(lines, key=lambda line: (not line.startswith("* Version"), line))
    return Mark("True", "RollingOut", "\n".join([f"Rolling out {len(outdated)} not up-to-date replicas", *ordered]))


def creation_obstacles(plane: ControlPlane, *, template_missing: bool, failed: Failed | None) -> list[str]:
    """Return the problems that prevent the creation of Machines until a user or component fixes them."""
    template = plane.kcp.spec.machine_template.spec.infrastructure_ref.kind
    missing = [f"{template} does not exist"] if template_missing else []
    return [*missing, *([failed.summary] if failed else [])]


def scaling_up(
    plane: ControlPlane, preflight: Preflight, *, template_missing: bool, failed: Failed | None = None
) -> Mark:
    """Return the condition ScalingUp, with the obstacles."""
    if plane.kcp.spec.replicas is None:
        return Mark("Unknown", "WaitingForReplicasSet", "Waiting for spec.replicas set")
    current, desired = len(plane.machines), 0 if plane.deleting else plane.desired
    reasons = creation_obstacles(plane, template_missing=template_missing, failed=failed)
    if current >= desired:
        # a rollout creates one more Machine than desired
        message = f"Scaling up would be blocked because {reasons[0]}" if reasons else ""
        return Mark("False", "NotScalingUp", message)
    lines = [*preflight.lines, *(f"* {reason}" for reason in reasons)]
    return Mark("True", "ScalingUp", _blocked(f"Scaling up from {current} to {desired} replicas", lines))


def scaling_down(plane: ControlPlane, preflight: Preflight, now: datetime) -> Mark:
    """Return the condition ScalingDown, with the obstacles."""
    if plane.kcp.spec.replicas is None:
        return Mark("Unknown", "WaitingForReplicasSet", "Waiting for spec.replicas set")
    current, desired = len(plane.machines), 0 if plane.deleting else plane.desired
    if current <= desired:
        return Mark("False", "NotScalingDown")
    stale = stale_message(plane.machines, now)
    lines = [*preflight.lines, *([f"* {stale}"] if stale else [])]
    return Mark("True", "ScalingDown", _blocked(f"Scaling down from {current} to {desired} replicas", lines))


def _blocked(message: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{message} is blocked because:", *lines]) if lines else message


def not_remediated(unhealthy: Sequence[Machine]) -> Mark:
    """Return the condition Remediating if the control plane remediates no Machine; it lists the unhealthy ones."""
    if not unhealthy:
        return Mark("False", "NotRemediating")
    noun, verb = ("Machine", "is") if len(unhealthy) == 1 else ("Machines", "are")
    message = f"{noun} {listed(names(unhealthy))} {verb} not healthy (not to be remediated by KubeadmControlPlane)"
    return Mark("False", "NotRemediating", message)


def up_to_date(plane: ControlPlane, machine: Machine) -> Mark:
    """Return the condition UpToDate of a Machine."""
    reasons = plane.outdated.get(machine.metadata.name)
    if reasons is not None:
        return Mark("False", "NotUpToDate", "\n".join(f"* {reason}" for reason in reasons))
    info = machine.status.node_info
    if info is not None and info.kubelet_version and info.kubelet_version != machine.spec.version:
        message = f"* Node.status.nodeInfo.kubeletVersion {info.kubelet_version}, {machine.spec.version} required"
        return Mark("False", "Updating", message)
    return Mark("True", "UpToDate")


def resized(plane: ControlPlane, ready: int) -> LegacyMark | None:
    """Return the v1beta1 condition about the number of Machines; None leaves it unchanged."""
    current, desired = len(plane.machines), plane.desired
    if current < desired:
        message = f"Scaling up control plane to {desired} replicas (actual {current})"
        return LegacyMark("False", WARNING, "ScalingUp", message)
    if current > desired:
        message = f"Scaling down control plane to {desired} replicas (actual {current})"
        return LegacyMark("False", WARNING, "ScalingDown", message)
    return LegacyMark("True") if ready == current else None


def spec_up_to_date(plane: ControlPlane, *, known: bool) -> LegacyMark | None:
    """Return the v1beta1 condition about a rollout, which is set from the first rollout on."""
    outdated = len(plane.needs_rollout)
    if outdated:
        rest = len(plane.machines) - outdated
        message = f"Rolling {outdated} replicas with outdated spec ({rest} replicas up to date)"
        return LegacyMark("False", WARNING, "RollingUpdateInProgress", message)
    return LegacyMark("True") if known else None
