"""What must hold when something is deleted, and when it is gone. Each gives what is broken."""

from __future__ import annotations

from ironbell.kube.decision import Key
from support.lives.picture import (
    CONTROL_PLANES,
    DEPLOYMENTS,
    DEV_CLUSTERS,
    DEV_MACHINES,
    KNOWN_S,
    OWNED_BY,
    SETS,
    Body,
    Picture,
    cluster_of,
    is_available,
    is_control_plane,
    is_going,
    key_of,
    labels,
    replicas,
    unavailable,
)


def machine_goes(picture: Picture, machine: Body) -> list[str]:
    """Somebody has deleted a Machine."""
    key, cluster = key_of(machine), cluster_of(machine)
    if key in picture.deleted_by_user:
        return []
    if picture.leaves(cluster):
        workers = [key_of(one)[1] for one in picture.machines(cluster) if not is_control_plane(one)]
        if is_control_plane(machine) and workers:
            return [f"Machine {key[1]} of the control plane goes, and workers are there: {', '.join(workers)}"]
        return []
    found = picture.owner(machine)
    owner = picture.get(*found) if found is not None else None
    if found is None or owner is None or is_going(owner):
        return []
    since = picture.paused_since.get(cluster)
    broken = []
    if since is not None and not picture.lately(since, KNOWN_S):
        broken.append(f"Machine {key[1]} was deleted, and the Cluster is paused")
    there = list(picture.machines_of(*found))
    too_many = len(there) > replicas(owner)
    if not (too_many or picture.is_outdated(machine) or picture.is_sick(machine)):
        broken.append(f"Machine {key[1]} was deleted, and there is no reason")
    if found[0] == CONTROL_PLANES:
        broken += _plane_shrinks(picture, machine, there)
    elif is_available(machine):
        broken += _too_few(picture, machine, owner, there)
    return broken


def _too_few(picture: Picture, machine: Body, owner: Body, there: list[Body]) -> list[str]:
    """A rollout leaves as many available Machines as it says."""
    left = [
        one
        for one in there
        if not is_going(one) and (is_available(one) or picture.lately(picture.available_at.get(key_of(one)), KNOWN_S))
    ]
    least = replicas(owner) - unavailable(owner)
    if len(left) >= least or not picture.is_outdated(machine):
        return []
    name = key_of(machine)[1]
    return [f"Machine {name} was deleted, and {len(left)} available ones are left of {least} that must be"]


def _plane_shrinks(picture: Picture, machine: Body, there: list[Body]) -> list[str]:
    """A quorum of etcd is left that runs, and one Machine goes at a time."""
    name, cluster = key_of(machine)[1], cluster_of(machine)
    broken = []
    others = [
        key_of(one)[1]
        for one in there
        if is_going(one) and key_of(one) not in picture.deleted_by_user and key_of(one) != key_of(machine)
    ]
    if others and not picture.is_sick(machine):
        broken.append(f"Machine {name} was deleted while {', '.join(others)} goes")
    inside = picture.site.cloud.clusters.get(cluster)
    node = machine.get("status", {}).get("nodeRef", {}).get("name", "")
    if inside is None or inside.etcd.external or inside.etcd.find(node) is None:
        return broken
    if picture.lately(picture.harmed_cluster.get(cluster), KNOWN_S):
        return broken
    members = [member.name for member in inside.etcd.members if member.name != node]
    running = [member for member in members if member in inside.etcd.running]
    if len(running) < len(members) // 2 + 1:
        broken.append(f"Machine {name} was deleted, which leaves {len(running)} of {len(members)} members of etcd")
    return broken


def machine_gone(picture: Picture, machine: Body) -> list[str]:
    """A Machine goes only when its host was released, and what the host was made of is gone; then its node goes."""
    name, infrastructure = key_of(machine)[1], machine["spec"]["infrastructureRef"]["name"]
    broken = []
    if picture.host(machine) is not None:
        broken.append(f"Machine {name} is gone, and its host is not released")
    if picture.get(DEV_MACHINES, (key_of(machine)[0], infrastructure)) is not None:
        broken.append(f"Machine {name} is gone, and DevMachine {infrastructure} is there")
    inside = picture.site.cloud.clusters.get(cluster_of(machine))
    node = machine.get("status", {}).get("nodeRef", {}).get("name", "")
    if not node or inside is None or not inside.answers or picture.leaves(cluster_of(machine)):
        return broken
    if inside.server.context.store.get("nodes", ("", node)) is not None:
        broken.append(f"Machine {name} is gone, and its node is there")
    return broken


def infrastructure_goes(picture: Picture, infrastructure: Body) -> list[str]:
    """The infrastructure of a cluster is deleted after all its Machines."""
    owners = infrastructure["metadata"].get("ownerReferences") or ()
    broken = []
    for owner in owners:
        there = _names(picture, (key_of(infrastructure)[0], owner["name"]))
        if there:
            broken.append(f"DevCluster {key_of(infrastructure)[1]} was deleted, and there are Machines: {there}")
    return broken


def cluster_gone(picture: Picture, cluster: Body) -> list[str]:
    """A Cluster is the last to go."""
    key = key_of(cluster)
    left = [*picture.machines(key)]
    for resource in (*OWNED_BY, SETS, DEV_CLUSTERS):
        left += [
            one
            for one in picture.objects[resource].values()
            if labels(one).get("cluster.x-k8s.io/cluster-name") == key[1] and key_of(one)[0] == key[0]
        ]
    if not left:
        return []
    return [f"Cluster {key[1]} is gone, and there are: {', '.join(one['kind'] + ' ' + key_of(one)[1] for one in left)}"]


def owner_gone(picture: Picture, owner: Body) -> list[str]:
    """A control plane or a MachineDeployment goes after its Machines."""
    resource = CONTROL_PLANES if owner["kind"] == "KubeadmControlPlane" else DEPLOYMENTS
    left = [key_of(one)[1] for one in picture.machines_of(resource, key_of(owner))]
    return [f"{owner['kind']} {key_of(owner)[1]} is gone, and Machines are there: {', '.join(left)}"] if left else []


def set_gone(picture: Picture, machine_set: Body) -> list[str]:
    """A MachineSet goes after its Machines."""
    uid = machine_set["metadata"]["uid"]
    left = [
        key_of(one)[1]
        for one in picture.machines(cluster_of(machine_set))
        if any(owner["uid"] == uid for owner in one["metadata"].get("ownerReferences") or ())
    ]
    return [f"MachineSet {key_of(machine_set)[1]} is gone, and Machines are there: {', '.join(left)}"] if left else []


def _names(picture: Picture, cluster: Key) -> str:
    return ", ".join(key_of(one)[1] for one in picture.machines(cluster))
