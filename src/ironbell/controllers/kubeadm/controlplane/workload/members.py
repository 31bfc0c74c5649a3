"""Removal of etcd members without a Machine, one at a time, if it is safe. Pure.

Such a member remains when a Machine was deleted without it: by force, or because the member was never known. Unlike
upstream, a member whose Node is ready is kept: after a restore from a backup, this is a control plane machine that is
newer than the backup.

Source: kubernetes-sigs/cluster-api: controlplane/kubeadm/reconcilers/kubeadmcontrolplane (reconcileEtcdMembers).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from ironbell.controllers.kubeadm.controlplane.conditions.etcdhealth import orphans_of
from ironbell.controllers.kubeadm.controlplane.machines.quorum import etcd_forecast
from ironbell.controllers.kubeadm.controlplane.model import ControlPlane, has_node, is_deleting, moment
from ironbell.workload.etcd import Member

_STARTUP: Final = timedelta(seconds=20)
"""Maximum time from the creation of a Node until its etcd member has a name."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A member to be removed; `blocked` is the reason why it must not be removed now."""

    member: Member
    blocked: str = ""


def orphan_to_remove(plane: ControlPlane, now: datetime) -> Orphan | None:
    """Return the next member to be removed; None if there is none, or if it may belong to a Machine."""
    view = plane.inside.etcd
    if not plane.etcd_managed or not plane.machines or view is None or plane.inside.nodes_error:
        return None
    orphans = sorted(orphans_of(plane, view), key=lambda member: (member.name, member.id))
    if not orphans or any(not has_node(machine) for machine in plane.machines):
        return None
    if any(not member.name for member in orphans) and _has_new_node(plane, now):
        return None
    running = [member for member in orphans if _runs(plane, member)]
    member = next((member for member in orphans if member not in running), orphans[0])
    if not member.name:
        # it will never start, because its Machine was deleted
        return Orphan(member)
    if member.name not in plane.inside.strangers:
        return None
    if member in running:
        return Orphan(
            member,
            f"etcd member {member.name} does not have a corresponding Machine, and its Node is ready: nothing is "
            "changed until the Node is deleted",
        )
    forecast = etcd_forecast(view.members, view.alarms, plane.member_health(), without=member.name)
    if forecast.safe:
        return Orphan(member)
    return Orphan(
        member,
        f"etcd member {member.name} does not have a corresponding Machine, it must be removed from the cluster but "
        "this operation can lead to quorum loss. Please check the etcd status",
    )


def _runs(plane: ControlPlane, member: Member) -> bool:
    node = plane.inside.strangers.get(member.name)
    ready = node.condition("Ready") if node is not None else None
    return ready is not None and ready.status == "True"


def _has_new_node(plane: ControlPlane, now: datetime) -> bool:
    for machine in plane.machines:
        node = plane.inside.nodes.get(machine.status.node_ref.name)
        since = moment(node.creation_timestamp) if node is not None and not is_deleting(machine) else None
        if since is not None and now - since < _STARTUP:
            return True
    return False
