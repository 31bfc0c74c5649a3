"""The reasons why Machines are outdated, and the next step of a rollout. Pure.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/pkg/filters.go,
controlplane/kubeadm/reconcilers/kubeadmcontrolplane/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ironbell.api.cluster.machine import Machine
from ironbell.api.cluster.names import ANNOTATION_CLONED_FROM_GROUP_KIND, ANNOTATION_CLONED_FROM_NAME
from ironbell.api.controlplane.kubeadmcontrolplane import KubeadmControlPlane
from ironbell.controllers.kubeadm.controlplane.machines.configspec import is_up_to_date
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, created, moment
from ironbell.kube.decision import Fields


def reasons(
    kcp: KubeadmControlPlane,
    kubeadm_config_spec: Fields,
    version: tuple[int, int, int],
    *,
    machine: Machine,
    config: Fields | None,
    infra: Mapping[str, Any] | None,
    now: datetime,
) -> tuple[str, ...]:
    """Return the reasons why a Machine has to be replaced; empty if it is up to date.

    Args:
        kcp: the control plane.
        kubeadm_config_spec: its `spec.kubeadmConfigSpec` as plain data.
        version: its Kubernetes version.
        machine: the Machine.
        config: spec of its KubeadmConfig; a missing one is not a reason, because a rollout does not repair Machines.
        infra: its infrastructure machine; the same.
        now: the time.
    """
    messages = []
    if _certificates_expire(kcp, machine, now):
        messages.append("Certificates will expire soon")
    if _after(kcp, machine, now):
        messages.append("KubeadmControlPlane spec.rolloutAfter expired")
    if machine.spec.version != kcp.spec.version:
        messages.append(f"Version {machine.spec.version}, {kcp.spec.version} required")
    if config is not None and not is_up_to_date(config, kubeadm_config_spec, version):
        messages.append("KubeadmConfig is not up-to-date")
    if infra is not None and _template_rotated(kcp, infra):
        messages.append(f"{machine.spec.infrastructure_ref.kind} is not up-to-date")
    return tuple(messages)


def next_change(kcp: KubeadmControlPlane, machines: tuple[Machine, ...], now: datetime) -> datetime | None:
    """Return the next time at which a Machine becomes outdated without another change."""
    times = [moment(kcp.spec.rollout.after)]
    days = kcp.spec.rollout.before.certificates_expiry_days
    if days:
        ends = [moment(machine.status.certificates_expiry_date) for machine in machines]
        times += [end - timedelta(days=days) for end in ends if end is not None]
    return min((when for when in times if when is not None and when > now), default=None)


def _certificates_expire(kcp: KubeadmControlPlane, machine: Machine, now: datetime) -> bool:
    days = kcp.spec.rollout.before.certificates_expiry_days
    end = moment(machine.status.certificates_expiry_date)
    return bool(days) and end is not None and now + timedelta(days=days) > end


def _after(kcp: KubeadmControlPlane, machine: Machine, now: datetime) -> bool:
    after = moment(kcp.spec.rollout.after)
    return after is not None and created(machine) < after < now


def _template_rotated(kcp: KubeadmControlPlane, infra: Mapping[str, Any]) -> bool:
    annotations = infra.get("metadata", {}).get("annotations") or {}
    name, group_kind = annotations.get(ANNOTATION_CLONED_FROM_NAME), annotations.get(ANNOTATION_CLONED_FROM_GROUP_KIND)
    if name is None or group_kind is None:
        return False
    reference = kcp.spec.machine_template.spec.infrastructure_ref
    return (name, group_kind) != (reference.name, f"{reference.kind}.{reference.api_group}")


def scales_up_first(plane: ControlPlane) -> bool:
    """Return whether a rollout creates a Machine before it deletes one."""
    surge = plane.kcp.spec.rollout.strategy.rolling_update.max_surge
    return len(plane.machines) < plane.desired + (1 if surge is None else int(surge))
