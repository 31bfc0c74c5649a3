"""What must hold when a host is given back, and when a member is taken out of etcd. Each gives what is broken."""

from __future__ import annotations

from typing import Final

from ironbell.base.clock import parse_rfc3339
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.host import Host
from ironbell.workload.etcd import Member
from support.lives.picture import KNOWN_S, SICK_S, Picture, is_going, key_of
from support.lives.wanted import DRAIN_S

JOINING_S: Final = 2.0
"""A node that is younger may have come after it was made sure that there is none."""
APP: Final = "app"
"""Label of pods that are not the cluster's own: they are drained."""


def released(picture: Picture, host: Host) -> list[str]:
    """A host is released only after its node was drained and it left etcd, but with its whole cluster."""
    cluster, name, node = host.cluster, host.plan.key[1], host.state.node
    if picture.leaves(cluster.key) or not host.state.joined:
        return []
    machine = picture.machine_of(host.plan.key)
    if machine is None or not is_going(machine):
        return [f"host {name} was released, and its Machine is not being deleted"]
    owner = picture.owner(machine)
    body = picture.get(*owner) if owner is not None else None
    whole = body is None or is_going(body)
    broken = []
    if cluster.etcd.find(node) is not None and not cluster.etcd.external and len(cluster.etcd.members) > 1:
        broken.append(f"host {name} was released, and is a member of etcd")
    return broken if whole else [*broken, *_not_drained(picture, host, picture.going_since.get(key_of(machine), 0.0))]


def _not_drained(picture: Picture, host: Host, since: float) -> list[str]:
    """Whether pods are on the node that had time to go: those of a node that is not heard of cannot end."""
    name, node = host.plan.key[1], host.state.node
    store = host.cluster.server.context.store
    entry = store.get("nodes", ("", node))
    harmed = picture.harmed.get(host.plan.key)
    if entry is None or host.state.dead or picture.lately(harmed, SICK_S):
        return []
    if not picture.lately(since, DRAIN_S - KNOWN_S):
        return []
    joined = parse_rfc3339(entry.decode()["metadata"]["creationTimestamp"])
    if (picture.site.clock.now() - joined).total_seconds() < JOINING_S:
        return []
    broken = []
    if not entry.decode()["spec"].get("unschedulable"):
        broken.append(f"host {name} was released, and its node is not cordoned")
    for pod in store.objects("pods").entries():
        body = pod.decode()
        if body["spec"].get("nodeName") == node and APP in (body["metadata"].get("labels") or {}):
            broken.append(f"host {name} was released, and pod {pod.name} is on it")
    return broken


def member_leaves(picture: Picture, cluster: SimCluster, member: Member) -> list[str]:
    """Only the member of a Machine that goes is taken out of etcd, and not while it leads."""
    etcd, broken = cluster.etcd, []
    for machine in picture.machines(cluster.key):
        node = machine.get("status", {}).get("nodeRef", {}).get("name", "")
        if node == member.name and not is_going(machine):
            broken.append(f"member {member.name} was taken out of etcd, and its Machine is not being deleted")
    recently = picture.lately(picture.harmed_cluster.get(cluster.key), KNOWN_S)
    if etcd.leader == member.name and not recently:
        broken.append(f"member {member.name} was taken out of etcd while it led")
    left = [one.name for one in etcd.members if one.name != member.name]
    running = [name for name in left if name in etcd.running]
    if len(running) < len(left) // 2 + 1 and not recently:
        broken.append(f"member {member.name} was taken out of etcd, which leaves {len(running)} of {len(left)}")
    return broken
