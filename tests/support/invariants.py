"""What must hold at every moment of a replayed site, whatever happens in it.

Looked at on every committed write of the management cluster, and whenever the cloud takes a machine away or a cluster
changes: nothing is sampled. What is broken is noted with the moment, and `check` raises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ironbell.apiserver.store.entry import Change
from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster import SimCluster
from ironbell.lab.sim.host import Host
from ironbell.lab.sim.replay import ReplaySite

CLUSTERS, MACHINES = "clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"
DEPLOYMENTS = "machinedeployments.cluster.x-k8s.io"
CONTROL_PLANES = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
_OWNED_BY = {DEPLOYMENTS: "cluster.x-k8s.io/deployment-name", CONTROL_PLANES: "cluster.x-k8s.io/control-plane-name"}


class InvariantError(AssertionError):
    """Something happened that must not."""


@dataclass
class Invariants:
    """Watches one site."""

    site: ReplaySite
    broken: list[str] = field(default_factory=list)
    lost_on_purpose: set[Key] = field(default_factory=set)
    """Clusters that a fault took a quorum from: they may be without."""
    _objects: dict[str, dict[Key, Mapping[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    _most: dict[tuple[str, Key], int] = field(default_factory=dict)
    _answered: set[Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.site.server.context.store.listen(self._changed)
        self.site.cloud.watch_releases(self._released)
        self.site.cloud.watch_clusters(self._cluster_changed)

    def check(self) -> None:
        """Raise for what was broken so far."""
        if self.broken:
            raise InvariantError("\n".join(self.broken))

    def calm(self) -> None:
        """All is as wanted: what was wanted before counts no more for how many there may be."""
        for resource in _OWNED_BY:
            for key, body in self._objects[resource].items():
                self._most[resource, key] = _replicas(body)

    def _note(self, what: str) -> None:
        self.broken.append(f"at {self.site.clock.monotonic():.1f} s: {what}")

    def _changed(self, change: Change) -> None:
        resource = change.entry.resource
        if resource not in (CLUSTERS, MACHINES, *_OWNED_BY):
            return
        body = change.entry.decode()
        key = (change.entry.namespace, change.entry.name)
        if change.deleted:
            self._objects[resource].pop(key, None)
            if resource == MACHINES:
                self._machine_gone(body)
            return
        self._objects[resource][key] = body
        if resource in _OWNED_BY:
            self._most[resource, key] = max(self._most.get((resource, key), 0), _replicas(body))
        if resource == MACHINES:
            self._machine_there(body)

    def _machine_gone(self, body: Mapping[str, Any]) -> None:
        """A Machine goes only when its host was released."""
        meta = body["metadata"]
        infrastructure = (meta["namespace"], body["spec"]["infrastructureRef"]["name"])
        if self.site.cloud.named(infrastructure) is not None:
            self._note(f"Machine {meta['name']} is gone, and its host is not released")

    def _machine_there(self, body: Mapping[str, Any]) -> None:
        """Never more Machines than surge allows."""
        for resource, label in _OWNED_BY.items():
            name = body["metadata"].get("labels", {}).get(label)
            key = (body["metadata"]["namespace"], name)
            owner = self._objects[resource].get(key) if name else None
            if owner is None:
                continue
            # a control plane's etcd has a member on those that are being deleted, too
            counts_deleting = resource == CONTROL_PLANES
            there = [
                one["metadata"]["name"]
                for one in self._objects[MACHINES].values()
                if one["metadata"].get("labels", {}).get(label) == name
                and (counts_deleting or "deletionTimestamp" not in one["metadata"])
            ]
            most = self._most[resource, key] + _surge(owner)
            if len(there) > most:
                self._note(f"{name} has {len(there)} Machines, {most} are allowed: {', '.join(sorted(there))}")

    def _released(self, host: Host) -> None:
        """A host is released only after its node was drained, but with its whole cluster."""
        cluster, node = host.cluster, host.state.node
        owner = self._objects[CLUSTERS].get(cluster.key)
        if owner is None or "deletionTimestamp" in owner["metadata"] or not cluster.answers or not host.state.joined:
            return
        control_plane = self._objects[CONTROL_PLANES].get((cluster.key[0], f"{cluster.key[1]}-control-plane"))
        if control_plane is None or "deletionTimestamp" in control_plane["metadata"]:
            return
        entry = cluster.server.context.store.get("nodes", ("", node))
        if entry is not None and not entry.decode()["spec"].get("unschedulable"):
            self._note(f"host {host.plan.key[1]} was released, and its node is not cordoned")
        if cluster.etcd.find(node) is not None and not cluster.etcd.external and len(cluster.etcd.members) > 1:
            self._note(f"host {host.plan.key[1]} was released, and is a member of etcd")

    def _cluster_changed(self, cluster: SimCluster) -> None:
        """Never less than a quorum by our own act."""
        key = cluster.key
        if cluster.answers:
            self._answered.add(key)
            return
        owner = self._objects[CLUSTERS].get(key)
        leaves = owner is None or "deletionTimestamp" in owner["metadata"]
        if key in self._answered and not leaves and not cluster.down and key not in self.lost_on_purpose:
            members = ", ".join(member.name for member in cluster.etcd.members)
            running = ", ".join(cluster.etcd.running)
            self._note(f"cluster {key[1]} does not answer: members {members}; running {running}")
            self._answered.discard(key)


def _replicas(body: Mapping[str, Any]) -> int:
    return int(body["spec"].get("replicas", 1))


def _surge(body: Mapping[str, Any]) -> int:
    """What upstream's default allows; the scenarios set no other."""
    strategy = body["spec"].get("rollout", {}).get("strategy", {}).get("rollingUpdate", {})
    return int(strategy.get("maxSurge", 1))
