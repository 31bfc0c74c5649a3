"""The state of a cluster's objects, as they report it: summary, counters, and what they wait for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.cluster.names import LABEL_CONTROL_PLANE, LABEL_CONTROL_PLANE_NAME, LABEL_DEPLOYMENT_NAME
from ironbell.contract.clusters.machine_causes import is_health_checked, terminal_failure
from ironbell.operations.cluster.snapshot import Snapshot, object_name
from ironbell.operations.discovered import Object
from ironbell.operations.why.depends import CHANGES, is_settled
from ironbell.operations.why.findings import GOOD_WHEN_FALSE, one_line
from ironbell.operations.why.world import conditions


@dataclass(frozen=True)
class Standing:
    """The summary condition of an object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    since: str = ""
    message: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether the object waits for nothing."""
        return self.status == ("False" if self.type in GOOD_WHEN_FALSE else "True")


def standing(obj: Object) -> Standing:
    """The most important condition: a deletion, a pause, then Available, then Ready."""
    reported = conditions(obj)
    for name in ("Deleting", "Paused"):
        if reported.get(name, {}).get("status") == "True":
            return _standing(reported[name])
    if "Available" in reported:
        message = reported["Available"].get("message") or reported.get("Ready", {}).get("message", "")  # as on Machines
        return _standing({**reported["Available"], "message": message})
    if "Ready" in reported:
        return _standing(reported["Ready"])
    provisioned = obj.get("status", {}).get("initialization", {}).get("provisioned")
    return Standing("Provisioned", str(provisioned)) if provisioned is not None else Standing()


def reason_to_wait(obj: Object) -> str:
    """One line with what an object waits for; empty if it waits for nothing."""
    if not obj.get("status", {}).get("conditions"):
        return f"{title(obj)} has not been reconciled yet"
    summary = standing(obj)
    if summary.is_good or not summary.type:
        return ""
    return f"{title(obj)}: {summary.message or summary.reason}"


def title(obj: Object) -> str:
    """Kind and name."""
    return f"{obj.get('kind', '')} {obj['metadata'].get('namespace', '')}/{object_name(obj)}"


def version(obj: Object) -> str:
    """The desired Kubernetes version of an object; empty if it has none."""
    spec = obj.get("spec", {})
    of_template = spec.get("template", {}).get("spec", {}) if isinstance(spec.get("template"), dict) else {}
    return str(spec.get("topology", {}).get("version") or spec.get("version") or of_template.get("version") or "")


def unsettled(snapshot: Snapshot) -> list[Object]:
    """Objects of a cluster that are not settled: control plane, workers, Machines of another version, Machines that are
    being deleted (no counter has them), then the Cluster itself, also while its counters lag."""
    scaled = [obj for obj in (snapshot.control_plane, *snapshot.deployments, *snapshot.pools) if obj is not None]
    return [
        *(obj for obj in scaled if not is_settled(obj)),
        *of_other_version(snapshot, snapshot.control_plane, *snapshot.deployments),
        *(obj for obj in snapshot.machines if "deletionTimestamp" in obj["metadata"]),
        *(obj for obj in (snapshot.cluster,) if not standing(obj).is_good or _is_behind(snapshot)),
    ]


def hopeless(snapshot: Snapshot) -> list[str]:
    """Machines that failed permanently and that nothing will replace, each with its cause: a wait for them is in vain.

    A Machine that a MachineHealthCheck selects is replaced, and so is a Machine of an owner with too many Machines or
    with another version.
    """
    outdated = {object_name(obj) for obj in of_other_version(snapshot, snapshot.control_plane, *snapshot.deployments)}
    causes = []
    for obj in snapshot.machines:
        machine = MACHINE.convert(obj)
        failure = terminal_failure(machine)
        if failure and not is_health_checked(machine) and object_name(obj) not in outdated | _surplus(snapshot, obj):
            causes.append(f"{title({'kind': 'Machine', **obj})}: {one_line(failure)}")
    return causes


def _surplus(snapshot: Snapshot, machine: Object) -> set[str]:
    """Names of the Machines of this Machine's owner, if the owner will delete some of them."""
    labels = machine["metadata"].get("labels") or {}
    for label, owners in (
        (LABEL_CONTROL_PLANE_NAME, (snapshot.control_plane,)),
        (LABEL_DEPLOYMENT_NAME, snapshot.deployments),
    ):
        for owner in owners:
            if owner is None or labels.get(label) != object_name(owner):
                continue
            names = {
                object_name(member)
                for member in snapshot.machines
                if (member["metadata"].get("labels") or {}).get(label) == object_name(owner)
                and "deletionTimestamp" not in member["metadata"]
            }
            return names if len(names) > owner.get("spec", {}).get("replicas", 1) else set()
    return set()


def of_other_version(snapshot: Snapshot, *owners: Object | None) -> list[Object]:
    """Machines with another version than the one that their owner desires.

    Counters of up-to-date Machines follow the Machines' conditions, which are about the previous version until each
    Machine has been reconciled again.
    """
    desired = {}
    for owner in owners:
        if owner is not None and version(owner):
            label = LABEL_CONTROL_PLANE_NAME if owner is snapshot.control_plane else LABEL_DEPLOYMENT_NAME
            desired[label, object_name(owner)] = version(owner)
    return [
        machine
        for machine in snapshot.machines
        for label, name in (machine["metadata"].get("labels") or {}).items()
        if desired.get((label, name), version(machine)) != version(machine)
    ]


def progress(snapshot: Snapshot, cause: str = "") -> str:
    """One line: the number of ready Machines, and the cause; without a cause, the first object that is waited for."""
    reasons = [reason_to_wait(obj) or _under_way(obj) for obj in (snapshot.infrastructure, *unsettled(snapshot)) if obj]
    first = cause or next((line for line in reasons if line), "")
    return "; ".join(part for part in (counts(snapshot), one_line(first)) if part)


def counts(snapshot: Snapshot) -> str:
    """The number of ready Machines, as text."""
    parts = []
    if snapshot.control_plane is not None:
        parts.append(f"control plane {_ready_text([snapshot.control_plane])}")
    if workers := [*snapshot.deployments, *snapshot.pools]:
        parts.append(f"workers {_ready_text(workers)}")
    return ", ".join(parts)


def _under_way(obj: Object) -> str:
    """The change that an object reports while it stays available."""
    reported = conditions(obj)
    doing = [kind for kind in CHANGES if reported.get(kind, {}).get("status") == "True"]
    return f"{title(obj)}: {one_line(reported[doing[0]].get('message', '')) or doing[0]}" if doing else ""


def _ready_text(objects: list[Object]) -> str:
    return f"{_ready(objects)}/{sum(obj.get('spec', {}).get('replicas', 1) for obj in objects)} ready"


def _ready(objects: list[Object]) -> int:
    return sum(obj.get("status", {}).get("readyReplicas") or 0 for obj in objects)


def _is_behind(snapshot: Snapshot) -> bool:
    """Return whether the Cluster's counters lag behind its dependents.

    They follow those of its control plane and workers, and `cluster list` and other tools show them.
    """
    if snapshot.has_topology and conditions(snapshot.cluster).get("TopologyReconciled", {}).get("status") != "True":
        return True
    status = snapshot.cluster.get("status", {})
    counted = {"workers": _ready_workers(snapshot)}
    if snapshot.control_plane is not None:
        counted["controlPlane"] = _ready([snapshot.control_plane])
    return any(name in status and (status[name].get("readyReplicas") or 0) != ready for name, ready in counted.items())


def _ready_workers(snapshot: Snapshot) -> int:
    """Number of ready Machines in deployments and pools, and in sets and Machines that the Cluster itself owns."""
    alone = [machine for machine in snapshot.machines if _is_of_cluster(machine) and not is_control_plane(machine)]
    sets = [*snapshot.deployments, *snapshot.pools, *filter(_is_of_cluster, snapshot.sets)]
    return _ready(sets) + len([m for m in alone if conditions(m).get("Ready", {}).get("status") == "True"])


def _is_of_cluster(obj: Object) -> bool:
    return any(owner.get("kind") == CLUSTER.kind for owner in obj["metadata"].get("ownerReferences") or ())


def is_control_plane(machine: Object) -> bool:
    """Return whether a Machine belongs to the control plane."""
    return LABEL_CONTROL_PLANE in (machine["metadata"].get("labels") or {})


def _standing(condition: dict[str, Any]) -> Standing:
    return Standing(
        condition["type"],
        condition["status"],
        condition.get("reason", ""),
        condition.get("lastTransitionTime", ""),
        one_line(condition.get("message", "")),
    )
