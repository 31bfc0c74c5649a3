"""What must hold at every moment of a replayed site, whatever happens in it.

Looked at on every committed write of the management cluster, whenever the cloud takes a machine away, a member is taken
out of etcd or a cluster stops to answer: nothing is sampled. What is broken is noted with the moment, and `check`
raises.

- There are never more Machines than the surge allows, and never fewer available ones by a rollout than it allows.
- A Machine goes only when its host was released; a cluster, a control plane and a MachineDeployment only after theirs.
- Workers go before the control plane, and that before the infrastructure of the cluster.
- A host is released only after its node was drained and its member of etcd taken out, but with its whole cluster.
- No step of the product leaves etcd without a quorum, and one Machine of a control plane goes at a time.
- A Machine is deleted for a reason: it is too many, not what is wanted, or sick.
- Workers are never newer than the control plane.
- Nothing happens to the Machines of a paused Cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ironbell.apiserver.store.entry import Change
from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster.cluster import SimCluster
from ironbell.lab.sim.cluster.host import Host
from ironbell.lab.sim.replay import ReplaySite
from ironbell.workload.etcd import Member
from support.lives import deletions, releases
from support.lives.picture import (
    CLUSTERS,
    CONTROL_PLANES,
    DEPLOYMENTS,
    DEV_CLUSTERS,
    KEPT,
    KNOWN_S,
    MACHINES,
    OWNED_BY,
    SETS,
    Body,
    Picture,
    cluster_of,
    is_available,
    is_control_plane,
    is_going,
    key_of,
    minor,
    replicas,
    surge,
)


class InvariantError(AssertionError):
    """Something happened that must not."""


@dataclass
class Invariants:
    """Watches one site."""

    site: ReplaySite
    broken: list[str] = field(default_factory=list)
    _most: dict[tuple[str, Key], int] = field(default_factory=dict)
    _surge: dict[tuple[str, Key], int] = field(default_factory=dict)
    _answered: set[Key] = field(default_factory=set)
    _watched: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.picture = Picture(self.site)
        self.site.server.context.store.listen(self._changed)
        self.site.cloud.watch_releases(self._released)
        self.site.cloud.watch_clusters(self._cluster_changed)

    def check(self) -> None:
        """Raise for what was broken so far."""
        if self.broken:
            raise InvariantError("\n".join(self.broken))

    def calm(self, cluster: Key) -> None:
        """All of a cluster is as wanted: what was wanted before counts no more for how many there may be."""
        for resource in OWNED_BY:
            for key, body in self.picture.objects[resource].items():
                if cluster_of(body) == cluster:
                    self._most[resource, key] = replicas(body)
                    self._surge[resource, key] = surge(body)

    def _note(self, what: str) -> None:
        self.broken.append(f"at {self.picture.now:.1f} s: {what}")

    def _changed(self, change: Change) -> None:
        resource = change.entry.resource
        if resource not in KEPT:
            return
        body = change.entry.decode()
        key = (change.entry.namespace, change.entry.name)
        picture = self.picture
        before = picture.objects[resource].get(key)
        if change.deleted:
            picture.objects[resource].pop(key, None)
            for what in _WHEN_GONE[resource](picture, body) if resource in _WHEN_GONE else ():
                self._note(what)
            return
        picture.objects[resource][key] = body
        if resource in OWNED_BY:
            slot = (resource, key)
            self._most[slot] = max(self._most.get(slot, 0), replicas(body))
            self._surge[slot] = max(self._surge.get(slot, 0), surge(body))
        elif resource == CLUSTERS:
            self._paused(key, body)
        elif resource == MACHINES:
            self._machine(key, before, body)
        elif resource == DEV_CLUSTERS and is_going(body) and before is not None and not is_going(before):
            for what in deletions.infrastructure_goes(picture, body):
                self._note(what)

    def _paused(self, key: Key, body: Body) -> None:
        if body["spec"].get("paused"):
            self.picture.paused_since.setdefault(key, self.picture.now)
        else:
            self.picture.paused_since.pop(key, None)

    def _machine(self, key: Key, before: Body | None, body: Body) -> None:
        picture = self.picture
        if is_available(body):
            picture.available_at[key] = picture.now
        if before is None:
            picture.made_at[key] = picture.now
            self._made(body)
        if is_going(body) and (before is None or not is_going(before)):
            picture.going_since[key] = picture.now
            for what in deletions.machine_goes(picture, body):
                self._note(what)

    def _made(self, body: Body) -> None:
        """Never more Machines than surge allows, nor newer ones than the control plane, nor while the Cluster is
        paused."""
        picture, name = self.picture, key_of(body)[1]
        if is_paused(picture, cluster_of(body)):
            self._note(f"Machine {name} was made, and the Cluster is paused")
        found = picture.owner(body)
        owner = picture.get(*found) if found is not None else None
        if found is None or owner is None:
            return
        there = [key_of(one)[1] for one in picture.machines_of(*found)]
        most = self._most[found] + self._surge[found]
        if len(there) > most:
            self._note(f"{found[1][1]} has {len(there)} Machines, {most} are allowed: {', '.join(sorted(there))}")
        if is_control_plane(body):
            return
        for other in picture.machines(cluster_of(body)):
            if is_control_plane(other) and minor(other["spec"]["version"]) < minor(body["spec"]["version"]):
                self._note(f"Machine {name} is newer than {key_of(other)[1]} of the control plane")

    def _released(self, host: Host) -> None:
        for what in releases.released(self.picture, host):
            self._note(what)

    def _cluster_changed(self, cluster: SimCluster) -> None:
        """Never less than a quorum by our own act."""
        key = cluster.key
        if key not in self._watched:
            self._watched.add(key)
            cluster.etcd.watchers.append(lambda member: self._member_leaves(cluster, member))
        if cluster.answers:
            self._answered.add(key)
            return
        if key in self._answered and not (self.picture.leaves(key) or cluster.down):
            self._answered.discard(key)
            if key not in self.picture.without_quorum:
                members = ", ".join(member.name for member in cluster.etcd.members)
                running = ", ".join(cluster.etcd.running)
                self._note(f"cluster {key[1]} does not answer: members {members}; running {running}")

    def _member_leaves(self, cluster: SimCluster, member: Member) -> None:
        for what in releases.member_leaves(self.picture, cluster, member):
            self._note(what)


def is_paused(picture: Picture, cluster: Key) -> bool:
    """Whether a Cluster is paused, and the product may be held to know."""
    since = picture.paused_since.get(cluster)
    return since is not None and not picture.lately(since, KNOWN_S)


_WHEN_GONE: dict[str, Callable[[Picture, Body], list[str]]] = {
    MACHINES: deletions.machine_gone,
    CLUSTERS: deletions.cluster_gone,
    CONTROL_PLANES: deletions.owner_gone,
    DEPLOYMENTS: deletions.owner_gone,
    SETS: deletions.set_gone,
}
