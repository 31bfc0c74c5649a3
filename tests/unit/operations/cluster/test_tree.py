"""The tree of a cluster, and the line on what it waits for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from ironbell.api.kind import Collection
from ironbell.cli.objects.tables import cluster_tree
from ironbell.kube.transport.http import HttpApi
from ironbell.operations.cluster.snapshot import Snapshot, read
from ironbell.operations.cluster.status import hopeless, of_other_version, one_line, progress, reason_to_wait, unsettled
from ironbell.operations.cluster.tree import tree

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
SINCE = "2026-01-01T11:50:00Z"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def obj(kind: str, name: str, *conditions: dict[str, Any], **parts: Any) -> dict[str, Any]:
    metadata = {"namespace": "site", "name": name, "generation": 1, **parts.pop("metadata", {})}
    status = {"observedGeneration": 1, "conditions": list(conditions), **parts.pop("status", {})}
    return {"kind": kind, "metadata": metadata, "spec": parts, "status": status}


def counts(number: int) -> dict[str, int]:
    return dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"), number)


AVAILABLE = condition("Available", "True", "Available")
NOT_YET = condition("Available", "False", "NotAvailable", "* Machine w-3:\n  * waits for its host")


def machine(name: str, *, good: bool, labels: dict[str, str] | None = None, owner: str = "") -> dict[str, Any]:
    owners = [{"name": owner, "controller": True}] if owner else []
    parts = {"infrastructureRef": {"apiGroup": "i", "kind": "Host", "name": f"host-{name}"}, "version": "v1.34.2"}
    return obj(
        "Machine",
        name,
        AVAILABLE if good else NOT_YET,
        metadata={"labels": labels or {}, "ownerReferences": owners},
        **parts,
    )


def cluster() -> Snapshot:
    owned = {"ownerReferences": [{"name": "md", "controller": True}]}
    return Snapshot(
        obj("Cluster", "one", NOT_YET, status={"controlPlane": counts(1), "workers": counts(3)}),
        obj("DevCluster", "one", condition("Ready", "True", "Ready")),
        obj("KubeadmControlPlane", "one", AVAILABLE, status=counts(1), replicas=1, version="v1.34.2"),
        (obj("MachineDeployment", "md", NOT_YET, status=counts(2), replicas=3),),
        (obj("MachineSet", "md-1", AVAILABLE, metadata=owned),),
        (),
        (
            machine("c", good=True, labels={"cluster.x-k8s.io/control-plane": ""}),
            machine("stray", good=True),
            *(machine(f"w-{number}", good=number < 3, owner="md-1") for number in (1, 2, 3)),
        ),
        {("i", "Host", "host-w-3"): obj("Host", "host-w-3", condition("Ready", "False", "Slow", "boots"))},
    )


def test_machines_stand_below_what_owns_them_and_alike_ones_are_one_line() -> None:
    lines = cluster_tree(tree(cluster()), NOW).splitlines()
    names = [line[: lines[0].index("REPLICAS")].rstrip() for line in lines]
    assert names == [
        "NAME",
        "Cluster site/one",
        "├─DevCluster site/one",
        "├─KubeadmControlPlane site/one, v1.34.2",
        "│ └─Machine site/c, v1.34.2",
        "└─Workers",
        "  ├─MachineDeployment site/md",
        "  │ ├─Machine site/w-3, v1.34.2",
        "  │ │ └─Host site/host-w-3",
        "  │ └─2 Machines...",
        "  └─Other",
        "    └─Machine site/stray, v1.34.2",
    ]
    assert " ".join(lines[1].split()[2:]) == "4 4 4 4 False NotAvailable 10m Machine w-3: waits for its host"
    assert "See w-1, w-2" in lines[9]
    assert "Ready: " not in lines[8]
    assert "Slow" in lines[8]


def test_every_machine_is_shown_where_that_is_asked_for() -> None:
    assert "Machine site/w-1, v1.34.2" in cluster_tree(tree(cluster(), grouping=False), NOW)


def test_json_leaves_out_what_is_not_known() -> None:
    plain = tree(cluster()).plain()
    assert plain["replicas"] == 4
    assert plain["children"][0] == {
        "kind": "DevCluster", "namespace": "site", "name": "one", "title": "DevCluster site/one",
        "condition": "Ready", "status": "True", "reason": "Ready", "since": SINCE,
    }  # fmt: skip


def test_a_deletion_is_marked_and_its_reason_comes_first() -> None:
    gone = condition("Deleting", "True", "DrainingNode", "evicts 3 pods")
    found = obj("Machine", "m", AVAILABLE, gone, metadata={"deletionTimestamp": SINCE})
    shown = cluster_tree(tree(Snapshot(obj("Cluster", "one", AVAILABLE), machines=(found,))), NOW)
    assert "!! DELETED !! Machine site/m" in shown
    assert "Deleting: True" in shown
    assert reason_to_wait(found) == "Machine site/m: evicts 3 pods"


def test_control_sequences_of_messages_do_not_reach_the_terminal() -> None:
    evil = obj("Cluster", "one", condition("Available", "False", "No", "a\x1b[2Jb"))
    assert "\x1b" not in cluster_tree(tree(Snapshot(evil)), NOW)


def test_progress_counts_machines_and_names_the_first_that_waits() -> None:
    assert [found["kind"] for found in unsettled(cluster())] == ["MachineDeployment", "Cluster"]
    assert progress(cluster()) == (
        "control plane 1/1 ready, workers 2/3 ready; MachineDeployment site/md: Machine w-3: waits for its host"
    )


def test_a_spec_that_was_not_looked_at_yet_is_not_settled() -> None:
    changed = obj("KubeadmControlPlane", "one", AVAILABLE, status=counts(1), replicas=1, metadata={"generation": 2})
    assert unsettled(Snapshot(obj("Cluster", "one", AVAILABLE), control_plane=changed)) == [changed]


def test_an_available_control_plane_tells_what_it_does() -> None:
    rolling = condition("RollingOut", "True", "RollingOut", "Rolling out 1 not up-to-date replicas")
    control_plane = obj("KubeadmControlPlane", "one", AVAILABLE, rolling, status=counts(2), replicas=1)
    snapshot = Snapshot(obj("Cluster", "one", AVAILABLE), control_plane=control_plane)
    assert progress(snapshot).endswith("KubeadmControlPlane site/one: Rolling out 1 not up-to-date replicas")


def test_an_open_topology_is_waited_for() -> None:
    managed = obj("Cluster", "one", AVAILABLE, topology={"classRef": {"name": "c"}})
    assert unsettled(Snapshot(managed)) == [managed]


def test_a_cluster_that_counts_less_than_its_parts_is_waited_for() -> None:
    """What `cluster list` prints after a wait says the same as what was waited for."""
    plane = obj("KubeadmControlPlane", "one", AVAILABLE, status=counts(3), replicas=3)
    workers = obj("MachineDeployment", "md", AVAILABLE, status=counts(2), replicas=2)

    def left(**status: object) -> list[str]:
        found = obj("Cluster", "one", AVAILABLE, status=status)
        return [one["kind"] for one in unsettled(Snapshot(found, control_plane=plane, deployments=(workers,)))]

    assert left(controlPlane={"readyReplicas": 2}, workers={"readyReplicas": 2}) == ["Cluster"]
    assert left(controlPlane={"readyReplicas": 3}, workers={}) == ["Cluster"]
    assert left(controlPlane={"readyReplicas": 3}, workers={"readyReplicas": 3}) == ["Cluster"], "scaled down since"
    assert left(controlPlane={"readyReplicas": 3}, workers={"readyReplicas": 2}) == []
    assert left() == [], "before v1beta2 a Cluster counted nothing"


def test_a_cluster_counts_sets_and_machines_that_stand_alone() -> None:
    owned = {"ownerReferences": [{"kind": "Cluster", "name": "one"}]}
    ready = condition("Ready", "True", "Ready")
    of_set = {"ownerReferences": [{"kind": "MachineSet", "name": "alone"}]}
    alone = obj("MachineSet", "alone", AVAILABLE, status=counts(1), replicas=1, metadata=owned)
    machines = (
        obj("Machine", "in-the-set", ready, metadata=of_set),
        obj("Machine", "mine", ready, metadata=owned),
        obj("Machine", "plane", ready, metadata={**owned, "labels": {"cluster.x-k8s.io/control-plane": ""}}),
    )
    found = obj("Cluster", "one", AVAILABLE, status={"workers": {"readyReplicas": 2}})
    assert unsettled(Snapshot(found, sets=(alone,), machines=machines)) == []


def test_lists_of_messages_become_one_line() -> None:
    assert one_line("* A:\n  * b\n  * c\n* D: e") == "A: b; c; D: e"


def test_a_machine_that_still_goes_is_waited_for_though_no_counter_has_it() -> None:
    going = obj("Machine", "old", AVAILABLE, metadata={"deletionTimestamp": SINCE})
    assert unsettled(Snapshot(obj("Cluster", "one", AVAILABLE), machines=(going,))) == [going]


def test_a_machine_of_the_version_before_is_waited_for_though_it_counts_as_up_to_date() -> None:
    """Counters go by the Machines' conditions, which are of the time before until each was looked at anew."""
    plane = obj("KubeadmControlPlane", "one", AVAILABLE, status=counts(1), replicas=1, version="v1.35.0")
    spec = {"template": {"spec": {"version": "v1.35.0"}}}
    workers = obj("MachineDeployment", "md", AVAILABLE, status=counts(2), replicas=2, **spec)
    follows_its_image = obj("MachineDeployment", "image", AVAILABLE, status=counts(1), replicas=1)
    machines = [
        obj("Machine", name, AVAILABLE, metadata={"labels": {f"cluster.x-k8s.io/{label}": owner}}, version=version)
        for name, label, owner, version in (
            ("a", "control-plane-name", "one", "v1.34.2"),
            ("b", "deployment-name", "md", "v1.35.0"),
            ("c", "deployment-name", "md", "v1.34.2"),
            ("d", "deployment-name", "image", "v1.34.2"),
            ("e", "deployment-name", "one", "v1.34.2"),
        )
    ]
    cluster = obj("Cluster", "one", AVAILABLE)
    deployments = (workers, follows_its_image)
    found = Snapshot(cluster, control_plane=plane, deployments=deployments, machines=tuple(machines))
    assert unsettled(found) == [machines[0], machines[2]]
    assert of_other_version(found, plane) == [machines[0]]


async def test_machines_are_read_after_what_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round one that went in between is in the list as if it stayed, and counted no more."""
    asked: list[str] = []

    class Recorder:
        def __init__(self, _api: object) -> None: ...

        async def labelled(self, where: Collection, _namespace: str, _labels: str) -> list[dict[str, Any]]:
            asked.append(where.plural)
            return []

        async def find(self, _group: str, kind: str, _namespace: str, _name: str) -> None:
            asked.append(kind)

    class Api:
        async def get(self, *_where: object) -> bytes:
            references = {"controlPlaneRef": {"kind": "Plane", "name": "p"}, "infrastructureRef": {"name": "i"}}
            return msgspec.json.encode(obj("Cluster", "one", **references))

    monkeypatch.setattr("ironbell.operations.cluster.snapshot.Discovered", Recorder)
    await read(cast(HttpApi, Api()), "site", "one")
    assert asked.index("Plane") < asked.index("machines")
    assert asked.index("machinedeployments") < asked.index("machines") == len(asked) - 1


FAILED = condition("InfrastructureReady", "False", "InstallationFailed", "installation failed 3 of 3 times: disk")
CHECKED = condition("HealthCheckSucceeded", "True", "Succeeded")


def failed(name: str, *conditions: dict[str, Any], version: str = "v1.34.2", **metadata: Any) -> dict[str, Any]:
    labels = {"cluster.x-k8s.io/deployment-name": "md"}
    return obj("Machine", name, FAILED, *conditions, metadata={"labels": labels, **metadata}, version=version)


def workers(*machines: dict[str, Any], replicas: int) -> Snapshot:
    template = {"spec": {"version": "v1.34.2"}}
    deployment = obj("MachineDeployment", "md", NOT_YET, replicas=replicas, template=template)
    return Snapshot(obj("Cluster", "one", NOT_YET), deployments=(deployment,), machines=machines)


def test_waiting_for_a_machine_that_failed_for_good_is_in_vain() -> None:
    assert hopeless(workers(failed("w-1"), machine("w-2", good=False), replicas=2)) == [
        "Machine site/w-1: installation failed 3 of 3 times: disk"
    ]


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(workers(failed("w-1", CHECKED), replicas=1), id="a health check has it replaced"),
        pytest.param(workers(failed("w-1", deletionTimestamp=SINCE), replicas=1), id="it is being deleted"),
        pytest.param(workers(failed("w-1", version="v1.33.0"), replicas=1), id="it is being upgraded"),
        pytest.param(workers(failed("w-1"), replicas=0), id="there are too many"),
        pytest.param(workers(machine("w-1", good=False), replicas=1), id="it has not failed"),
    ],
)
def test_what_will_be_replaced_is_waited_for(snapshot: Snapshot) -> None:
    assert hopeless(snapshot) == []
