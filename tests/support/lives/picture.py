"""What is there on a replayed site, and what was done to it, for those who judge what the product does.

Kept up by every committed write of the management cluster. Faults are told by whoever makes them: what the product may
do because of them is measured from their moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ironbell.kube.decision import Key
from ironbell.lab.sim.cluster.host import Host
from ironbell.lab.sim.replay import ReplaySite

Body = Mapping[str, Any]
CLUSTERS, MACHINES = "clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"
SETS = "machinesets.cluster.x-k8s.io"
DEPLOYMENTS = "machinedeployments.cluster.x-k8s.io"
CONTROL_PLANES = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"
DEV_CLUSTERS = "devclusters.infrastructure.cluster.x-k8s.io"
DEV_MACHINES = "devmachines.infrastructure.cluster.x-k8s.io"
KEPT: Final = frozenset((CLUSTERS, MACHINES, SETS, DEPLOYMENTS, CONTROL_PLANES, DEV_CLUSTERS, DEV_MACHINES))
OWNED_BY: Final = {
    DEPLOYMENTS: "cluster.x-k8s.io/deployment-name",
    CONTROL_PLANES: "cluster.x-k8s.io/control-plane-name",
}
CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
SICK_S: Final = 1800.0
"""How long after it has lost its power a host may be taken for dead."""
KNOWN_S: Final = 20.0
"""How long after something has happened the product may act as if it had not: caches lag, requests are slow."""


@dataclass
class Picture:
    """The site."""

    site: ReplaySite
    objects: dict[str, dict[Key, Body]] = field(default_factory=lambda: defaultdict(dict))
    deleted_by_user: set[Key] = field(default_factory=set)
    """Machines."""
    harmed: dict[Key, float] = field(default_factory=dict)
    """When something was last done to the host or the node of a DevMachine."""
    harmed_cluster: dict[Key, float] = field(default_factory=dict)
    """When a host of a cluster last died or came back."""
    without_quorum: set[Key] = field(default_factory=set)
    """Clusters that a fault took a quorum from: they may be without."""
    paused_since: dict[Key, float] = field(default_factory=dict)
    made_at: dict[Key, float] = field(default_factory=dict)
    """When a Machine was first seen."""
    going_since: dict[Key, float] = field(default_factory=dict)
    """When a Machine was first seen to be deleted."""
    available_at: dict[Key, float] = field(default_factory=dict)
    """When a Machine was last seen to be available."""

    @property
    def now(self) -> float:
        return self.site.clock.monotonic()

    def harm(self, host: Host) -> None:
        """Something is done to a host."""
        self.harmed[host.plan.key] = self.harmed_cluster[host.plan.cluster] = self.now

    def lately(self, moment: float | None, within_s: float) -> bool:
        return moment is not None and self.now - moment <= within_s

    def get(self, resource: str, key: Key) -> Body | None:
        return self.objects[resource].get(key)

    def machines(self, cluster: Key) -> Iterator[Body]:
        for body in self.objects[MACHINES].values():
            if cluster_of(body) == cluster:
                yield body

    def machines_of(self, resource: str, key: Key) -> Iterator[Body]:
        """Machines of a MachineDeployment or control plane."""
        label = OWNED_BY[resource]
        for body in self.objects[MACHINES].values():
            if key_of(body)[0] == key[0] and labels(body).get(label) == key[1]:
                yield body

    def owner(self, machine: Body) -> tuple[str, Key] | None:
        """Whose Machine it is."""
        for resource, label in OWNED_BY.items():
            name = labels(machine).get(label)
            if name:
                return resource, (key_of(machine)[0], name)
        return None

    def leaves(self, cluster: Key) -> bool:
        """Whether the whole cluster is being deleted."""
        owner = self.get(CLUSTERS, cluster)
        return owner is None or is_going(owner)

    def host(self, machine: Body) -> Host | None:
        return self.site.cloud.named((key_of(machine)[0], machine["spec"]["infrastructureRef"]["name"]))

    def machine_of(self, infrastructure: Key) -> Body | None:
        """The Machine of a DevMachine."""
        for body in self.objects[MACHINES].values():
            if (key_of(body)[0], body["spec"]["infrastructureRef"]["name"]) == infrastructure:
                return body
        return None

    def is_sick(self, machine: Body) -> bool:
        """Whether something is, or was lately, wrong with a Machine."""
        infrastructure = (key_of(machine)[0], machine["spec"]["infrastructureRef"]["name"])
        if self.lately(self.harmed.get(infrastructure), SICK_S):
            return True
        host = self.host(machine)
        if host is None or not host.state.running:
            return self.now - self.made_at.get(key_of(machine), self.now) >= SICK_S - KNOWN_S
        return bool(host.state.dead or host.state.error)

    def is_outdated(self, machine: Body) -> bool:
        """Whether a Machine is not what its owner wants now."""
        found = self.owner(machine)
        owner = self.get(*found) if found is not None else None
        if found is None or owner is None:
            return True
        spec = owner["spec"]
        wanted = spec["machineTemplate"]["spec"] if found[0] == CONTROL_PLANES else spec["template"]["spec"]
        version = spec["version"] if found[0] == CONTROL_PLANES else wanted["version"]
        infrastructure = self.get(DEV_MACHINES, (key_of(machine)[0], machine["spec"]["infrastructureRef"]["name"]))
        made_from = annotations(infrastructure or {"metadata": {}}).get("cluster.x-k8s.io/cloned-from-name")
        return bool(machine["spec"]["version"] != version or made_from != wanted["infrastructureRef"]["name"])


def key_of(body: Body) -> Key:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def labels(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


def annotations(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("annotations") or {}


def is_going(body: Body) -> bool:
    return "deletionTimestamp" in body["metadata"]


def is_control_plane(machine: Body) -> bool:
    return "cluster.x-k8s.io/control-plane" in labels(machine)


def cluster_of(body: Body) -> Key:
    """The Cluster of a Machine, or of what has its label."""
    name = body["spec"].get("clusterName") or labels(body).get(CLUSTER_NAME, "")
    return key_of(body)[0], name


def replicas(body: Body) -> int:
    return int(body["spec"].get("replicas", 1))


def surge(body: Body) -> int:
    rolling = body["spec"].get("rollout", {}).get("strategy", {}).get("rollingUpdate", {})
    return int(rolling.get("maxSurge", 1))


def unavailable(body: Body) -> int:
    rolling = body["spec"].get("rollout", {}).get("strategy", {}).get("rollingUpdate", {})
    return int(rolling.get("maxUnavailable", 0))


def is_available(machine: Body) -> bool:
    conditions = machine.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)


def minor(version: str) -> int:
    return int(version.split(".")[1])


def told(body: Body) -> str:
    """An object in one line: what it is to be, and which of its conditions are not as they should be."""
    spec, status = body["spec"], body.get("status", {})
    about = [f"{name} {spec[name]}" for name in ("replicas", "version") if name in spec]
    about += [f"{name} {status[name]}" for name in ("phase", "replicas", "availableReplicas") if name in status]
    good = ("Paused", "Deleting", "Remediating", "RollingOut", "ScalingUp", "ScalingDown")
    about += [
        f"{one['type']}={one['status']} {one.get('reason', '')} {one.get('message', '')!r}"
        for one in status.get("conditions") or ()
        if (one["status"] == "True") == (one["type"] in good)
    ]
    deleted = " (deleted)" if is_going(body) else ""
    return f"{body['kind']} {key_of(body)[1]}{deleted}: {'; '.join(about)}"
