"""What is read for an answer: trees that are large, and objects that may not be read or that the API does not have."""

from __future__ import annotations

from ironbell.operations.why.model import Diagnosis, Object
from ironbell.operations.why.reader import MOST_OBJECTS, read_world
from ironbell.operations.why.rootcause import diagnose
from ironbell.operations.why.text import lines
from ironbell.operations.why.world import ref_of
from support.servers.whyworld import (
    CAPI,
    CAPT,
    CLUSTER,
    KCP,
    NOW,
    OF_ONE,
    PLANE,
    Objects,
    claimable,
    condition,
    host,
    machine,
    names,
    obj,
    reference,
)


async def answer(api: Objects, root: Object) -> Diagnosis:
    return diagnose(await read_world(api, root), ref_of(root), NOW)  # type: ignore[arg-type]


async def test_what_may_not_be_read_is_left_out_and_said() -> None:
    waits = host("m", "WaitingForHardware", "all 12 Hardware are claimed")
    objects = (CLUSTER, KCP, machine("m", PLANE, "WaitingForHardware"), waits)
    found = await answer(Objects(*objects, forbidden=["tinkerbellmachines"]), CLUSTER)
    assert names(found)[-1] == "Machine/m"
    assert found.left_out == (
        'Not read: TinkerbellMachine site/m (tinkerbellmachines is forbidden: User "dev" cannot get it).',
    )
    assert lines(found, NOW)[1] == found.left_out[0]
    assert found.plain()["leftOut"] == list(found.left_out)


async def test_servers_of_all_namespaces_refine_the_remedy_of_users_who_may_read_them() -> None:
    waits = host("m", "WaitingForHardware", "none of 1 Hardware fits")
    server = claimable(annotations={"ironbell.dev/hold": "fan"})
    found = await answer(Objects(waits, server), waits)
    assert found.remedy.startswith("Remove annotation ironbell.dev/hold")
    found = await answer(Objects(waits, server, forbidden=["hardwares", "namespaces"]), waits)
    assert found.remedy == "Add Hardware, release a server, or reduce the number of Machines"
    assert found.left_out == ()


async def test_an_object_of_which_nothing_could_be_read_is_not_called_well() -> None:
    fine = obj(CAPI, "MachineDeployment", "md", condition("Available", "True"), metadata={"labels": OF_ONE})
    found = await answer(Objects(fine, forbidden=["machines"], absent=[]), fine)
    assert found.message == "nothing blocks it"
    found = await answer(Objects(fine, machine("m", OF_ONE), forbidden=["machines"]), fine)
    assert found.message == "nothing that was read blocks it"
    assert "machines of namespace site" in lines(found, NOW)[1]


async def test_a_kind_that_is_not_installed_is_not_a_missing_object() -> None:
    found = await answer(Objects(CLUSTER, KCP, machine("m", PLANE)), CLUSTER)
    assert names(found)[-1] == "TinkerbellMachine/m"
    assert found.message == "cannot be read: the API has no kind TinkerbellMachine.infrastructure.cluster.x-k8s.io"
    assert found.remedy == "Install its provider, or correct the reference"


async def test_the_cause_is_found_in_a_tree_of_three_hundred_machines() -> None:
    """The cause is deep in one of many sets of workers; those that are settled are not read."""
    counts = {"replicas": 6, "readyReplicas": 6, "availableReplicas": 6, "upToDateReplicas": 6}
    objects: list[Object] = [CLUSTER, {**KCP, "status": {"conditions": [condition("Available", "True")], **counts}}]
    for number in range(50):
        labels = {**OF_ONE, "cluster.x-k8s.io/deployment-name": f"md{number}"}
        status = counts if number != 40 else {**counts, "readyReplicas": 0, "availableReplicas": 0}
        of_one = {"labels": OF_ONE}
        objects.append(obj(CAPI, "MachineDeployment", f"md{number}", metadata=of_one, status=status, replicas=6))
        for place in range(6):
            name = f"m{number}-{place}"
            objects.append(machine(name, labels) if number == 40 else _up(name, labels))
            objects.append(host(name, *(("Installing", "action 2 of 6") if place else ("HardwareHeld", "is held"))))
    api = Objects(*objects)
    found = await answer(api, CLUSTER)
    assert names(found)[-2:] == ["Machine/m40-0", "TinkerbellMachine/m40-0"]
    assert found.left_out == ()
    assert api.read < 40


async def test_a_tree_that_is_too_large_says_that_not_all_was_read() -> None:
    objects: list[Object] = [CLUSTER, KCP]
    for number in range(12):
        labels = {**OF_ONE, "cluster.x-k8s.io/deployment-name": f"md{number}"}
        objects.append(obj(CAPI, "MachineDeployment", f"md{number}", metadata={"labels": OF_ONE}, replicas=9))
        for place in range(9):
            name = f"m{number}-{place}"
            config = reference("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", name)
            above = machine(name, labels)
            above["spec"]["bootstrap"] = {"configRef": config}
            objects += [above, host(name, "Installing", f"action {place}"), _config(name)]
    api = Objects(*objects)
    found = await answer(api, CLUSTER)
    assert api.read <= MOST_OBJECTS + 12
    assert found.left_out == (f"Only the nearest {MOST_OBJECTS} objects were read.",)


def _config(name: str) -> Object:
    ready = condition("Ready", "False", "WaitingForControlPlaneInitialized")
    return obj("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", name, ready, metadata={"labels": OF_ONE})


def _up(name: str, labels: dict[str, str]) -> Object:
    up = obj(CAPI, "Machine", name, condition("Available", "True"), metadata={"labels": labels}, clusterName="one")
    up["spec"]["infrastructureRef"] = reference(CAPT, "TinkerbellMachine", name)
    return up
