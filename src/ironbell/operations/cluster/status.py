"""What an object of a cluster says of itself: its state, its counters, and why it is not done. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE, LABEL_CONTROL_PLANE_NAME, LABEL_DEPLOYMENT_NAME
from ironbell.contract.clusters.machine_failure import is_health_checked, terminal_failure
from ironbell.operations.cluster.snapshot import Snapshot, object_name
from ironbell.operations.discovered import Object
from ironbell.operations.why.depends import CHANGES, is_settled
from ironbell.operations.why.findings import GOOD_WHEN_FALSE, one_line
from ironbell.operations.why.world import conditions


@dataclass(frozen=True)
class Standing:
    """The condition that sums an object up."""

    type: str = ""
    status: str = ""
    reason: str = ""
    since: str = ""
    message: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing is waited for."""
        return self.status == ("False" if self.type in GOOD_WHEN_FALSE else "True")


def standing(obj: Object) -> Standing:
    """The condition that matters most: a deletion, a pause, then Available, then Ready."""
    found = conditions(obj)
    for name in ("Deleting", "Paused"):
        if found.get(name, {}).get("status") == "True":
            return _standing(found[name])
    if "Available" in found:
        why = found["Available"].get("message") or found.get("Ready", {}).get("message", "")  # Machines say it there
        return _standing({**found["Available"], "message": why})
    if "Ready" in found:
        return _standing(found["Ready"])
    provisioned = obj.get("status", {}).get("initialization", {}).get("provisioned")
    return Standing("Provisioned", str(provisioned)) if provisioned is not None else Standing()


def reason_to_wait(obj: Object) -> str:
    """One line on what an object waits for; empty if for nothing."""
    if not obj.get("status", {}).get("conditions"):
        return f"{title(obj)} has not been looked at yet"
    found = standing(obj)
    if found.is_good or not found.type:
        return ""
    return f"{title(obj)}: {found.message or found.reason}"


def title(obj: Object) -> str:
    """Kind and name."""
    return f"{obj.get('kind', '')} {obj['metadata'].get('namespace', '')}/{object_name(obj)}"


def version(obj: Object) -> str:
    """The Kubernetes version that an object is to have; empty where it has none."""
    spec = obj.get("spec", {})
    of_template = spec.get("template", {}).get("spec", {}) if isinstance(spec.get("template"), dict) else {}
    return str(spec.get("topology", {}).get("version") or spec.get("version") or of_template.get("version") or "")


def unsettled(snapshot: Snapshot) -> list[Object]:
    """What of a cluster is not as it is to be: control plane first, then workers, then Machines of another version and
    those that still go (no counter has them), then the Cluster itself, also while it counts less than they do."""
    scaled = [obj for obj in (snapshot.control_plane, *snapshot.deployments, *snapshot.pools) if obj is not None]
    return [
        *(obj for obj in scaled if not is_settled(obj)),
        *of_other_version(snapshot, snapshot.control_plane, *snapshot.deployments),
        *(obj for obj in snapshot.machines if "deletionTimestamp" in obj["metadata"]),
        *(obj for obj in (snapshot.cluster,) if not standing(obj).is_good or _is_behind(snapshot)),
    ]


def hopeless(snapshot: Snapshot) -> list[str]:
    """Machines that failed for good and that nothing will replace, each with its cause: waiting for them is in vain.

    A Machine that a MachineHealthCheck selects is replaced, and so is one that its owner has too many of or wants in
    another version.
    """
    outdated = {object_name(obj) for obj in of_other_version(snapshot, snapshot.control_plane, *snapshot.deployments)}
    found = []
    for obj in snapshot.machines:
        machine = MACHINE.convert(obj)
        why = terminal_failure(machine)
        if why and not is_health_checked(machine) and object_name(obj) not in outdated | _surplus(snapshot, obj):
            found.append(f"{title({'kind': 'Machine', **obj})}: {one_line(why)}")
    return found


def _surplus(snapshot: Snapshot, machine: Object) -> set[str]:
    """Names of the Machines of this Machine's owner, if the owner is about to delete some of them."""
    labels = machine["metadata"].get("labels") or {}
    for label, owners in (
        (LABEL_CONTROL_PLANE_NAME, (snapshot.control_plane,)),
        (LABEL_DEPLOYMENT_NAME, snapshot.deployments),
    ):
        for owner in owners:
            if owner is None or labels.get(label) != object_name(owner):
                continue
            names = {
                object_name(one)
                for one in snapshot.machines
                if (one["metadata"].get("labels") or {}).get(label) == object_name(owner)
                and "deletionTimestamp" not in one["metadata"]
            }
            return names if len(names) > owner.get("spec", {}).get("replicas", 1) else set()
    return set()


def of_other_version(snapshot: Snapshot, *owners: Object | None) -> list[Object]:
    """Machines of these owners that have another version than their owner wants.

    Whoever counts up-to-date Machines goes by their conditions, which are those of the version before until each has
    been looked at anew.
    """
    wanted = {}
    for owner in owners:
        if owner is not None and version(owner):
            label = LABEL_CONTROL_PLANE_NAME if owner is snapshot.control_plane else LABEL_DEPLOYMENT_NAME
            wanted[label, object_name(owner)] = version(owner)
    return [
        machine
        for machine in snapshot.machines
        for label, name in (machine["metadata"].get("labels") or {}).items()
        if wanted.get((label, name), version(machine)) != version(machine)
    ]


def progress(snapshot: Snapshot, cause: str = "") -> str:
    """One line: how many Machines are ready, and the cause; without one, what is waited for first."""
    why = [reason_to_wait(obj) or _under_way(obj) for obj in (snapshot.infrastructure, *unsettled(snapshot)) if obj]
    first = cause or next((line for line in why if line), "")
    return "; ".join(part for part in (counts(snapshot), one_line(first)) if part)


def counts(snapshot: Snapshot) -> str:
    """How many Machines are ready."""
    found = []
    if snapshot.control_plane is not None:
        found.append(f"control plane {_share([snapshot.control_plane])}")
    if workers := [*snapshot.deployments, *snapshot.pools]:
        found.append(f"workers {_share(workers)}")
    return ", ".join(found)


def _under_way(obj: Object) -> str:
    """What an object does that is available all the while."""
    found = conditions(obj)
    doing = [kind for kind in CHANGES if found.get(kind, {}).get("status") == "True"]
    return f"{title(obj)}: {one_line(found[doing[0]].get('message', '')) or doing[0]}" if doing else ""


def _share(objects: list[Object]) -> str:
    return f"{_ready(objects)}/{sum(obj.get('spec', {}).get('replicas', 1) for obj in objects)} ready"


def _ready(objects: list[Object]) -> int:
    return sum(obj.get("status", {}).get("readyReplicas") or 0 for obj in objects)


def _is_behind(snapshot: Snapshot) -> bool:
    """Whether the Cluster has not caught up with what belongs to it.

    Its counters follow those of its control plane and workers, and `cluster list` and other people's tools show them.
    """
    if snapshot.has_topology and conditions(snapshot.cluster).get("TopologyReconciled", {}).get("status") != "True":
        return True
    status = snapshot.cluster.get("status", {})
    counted = {"workers": _ready_workers(snapshot)}
    if snapshot.control_plane is not None:
        counted["controlPlane"] = _ready([snapshot.control_plane])
    return any(name in status and (status[name].get("readyReplicas") or 0) != ready for name, ready in counted.items())


def _ready_workers(snapshot: Snapshot) -> int:
    """Those of deployments and pools, and of sets and Machines that the Cluster itself owns."""
    alone = [one for one in snapshot.machines if _is_of_cluster(one) and not is_control_plane(one)]
    sets = [*snapshot.deployments, *snapshot.pools, *(one for one in snapshot.sets if _is_of_cluster(one))]
    return _ready(sets) + len([one for one in alone if conditions(one).get("Ready", {}).get("status") == "True"])


def _is_of_cluster(obj: Object) -> bool:
    return any(owner.get("kind") == CLUSTER.kind for owner in obj["metadata"].get("ownerReferences") or ())


def is_control_plane(machine: Object) -> bool:
    """Whether a Machine belongs to the control plane."""
    return LABEL_CONTROL_PLANE in (machine["metadata"].get("labels") or {})


def _standing(condition: dict[str, Any]) -> Standing:
    return Standing(
        condition["type"],
        condition["status"],
        condition.get("reason", ""),
        condition.get("lastTransitionTime", ""),
        one_line(condition.get("message", "")),
    )
