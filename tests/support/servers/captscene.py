"""A TinkerbellMachine and all that it needs in a world in memory, and somebody who plays Workflows and BMCs."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from ironbell.api.bmc.job import JOB
from ironbell.api.capt import TINKERBELL_CLUSTER, TINKERBELL_MACHINE
from ironbell.api.capt.tinkerbellmachine import TinkerbellMachine
from ironbell.api.cluster import CLUSTER, MACHINE
from ironbell.api.core.secret import SECRET
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP, USER_DATA_OF
from ironbell.contract.servers.wipe_due import wipe_due
from ironbell.controllers.capt.machine import TinkerbellMachineReconciler
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import MergePatch
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.installing import GIVE_USER_DATA, GiveUserData
from ironbell.provisioner.lifecycle.names import INSTALL_ATTEMPT, WIPE_ATTEMPT
from ironbell.workload.nodes import NodeNow
from ironbell.workload.queries import NodeByName, NodeByProviderId, NodeView
from support.servers.captworld import EVERY_VERSION, server
from support.servers.wipereports import wipe_action

MACHINES = TinkerbellMachineReconciler("http://192.0.2.1:7080", images=EVERY_VERSION)
BMC = {"bmcRef": {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": "bmc"}}
USER_DATA = "#cloud-config\n# provider-id: PROVIDER_ID\n"


def give(world: World, arguments: GiveUserData) -> list[Any]:
    body = {"metadata": {"annotations": {USER_DATA_OF: arguments.marked_as}}, "spec": {"userData": USER_DATA}}
    return [MergePatch(HARDWARE, *arguments.hardware, body, resource_version=arguments.resource_version)]


def _no_node(_world: World, _asked: NodeNow | NodeByName) -> None:
    """The cluster answers, and has no Node of that name."""


def _no_nodes(_world: World, _asked: NodeByProviderId) -> tuple[NodeView, ...]:
    """The cluster answers, and has no Node with that provider ID."""
    return ()


ASKERS = {NodeNow: _no_node, NodeByName: _no_node, NodeByProviderId: _no_nodes}


class Engine:
    """Plays the workflow and BMC controllers: what is made comes to an end, as often as it is told."""

    def __init__(
        self,
        *ends: str,
        reports: bool = True,
        wipe: str | tuple[str, ...] = "SUCCESS",
        power: str = "Completed",
        complete: bool = True,
        due: str | tuple[str, ...] = "SUCCESS",
        due_complete: bool = True,
    ) -> None:
        self.complete, self.due_complete = complete, due_complete
        self.due = (due,) if isinstance(due, str) else due
        self.ends, self.reports, self.power = ends or ("SUCCESS",), reports, power
        self.wipes = (wipe,) if isinstance(wipe, str) else wipe

    def __call__(self, world: World) -> None:
        for workflow in world.list(WORKFLOW):
            if workflow.status.state or workflow.metadata.deletion_timestamp:
                continue
            is_wipe = workflow.metadata.name.endswith("-wipe")
            is_due = workflow.metadata.name.endswith("-complete-wipe")
            machine = world.get(
                TINKERBELL_MACHINE, "default", workflow.metadata.labels.get("capt.tinkerbell.org/machine-name", "")
            )
            which, ends = (WIPE_ATTEMPT, self.wipes) if is_wipe else (INSTALL_ATTEMPT, self.ends)
            attempt = int(machine.metadata.annotations.get(which, "1")) if machine else 1
            if is_due:
                due = wipe_due(world.require(HARDWARE, "default", workflow.spec.hardware_ref))
                attempt, ends = due.attempt if due is not None else 1, self.due
            end = ends[min(attempt, len(ends)) - 1]
            if not end:
                continue
            action = {"id": "1", "name": "act", "state": end, "message": "done", "executionStop": rfc3339(world.now())}
            if is_wipe and end == "SUCCESS":
                wiped = world.require(HARDWARE, "default", workflow.spec.hardware_ref)
                action |= wipe_action(wiped, complete=self.due_complete if is_due else self.complete)
            world.set_status(
                WORKFLOW,
                workflow,
                {"state": end, "tasks": [{"name": "t", "id": "1", "agentID": "a", "actions": [action]}]},
            )
            if end == "SUCCESS" and self.reports and not is_wipe:
                hardware = world.require(HARDWARE, "default", workflow.spec.hardware_ref)
                up = {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: rfc3339(world.now())}}}
                world.change(HARDWARE, hardware, up)
        for job in world.list(JOB):
            if not job.status.conditions:
                world.set_status(JOB, job, {"conditions": [{"type": self.power, "status": "True", "message": "x"}]})


def scene(
    engine: Any = None,
    *,
    servers: int = 1,
    bmc: bool = True,
    cluster: dict[str, Any] | None = None,
    infrastructure: dict[str, Any] | None = None,
) -> World:
    world = World(performers={GIVE_USER_DATA: give}, resolvers=ASKERS, environment=engine)
    world.api.serve([HARDWARE, TEMPLATE, WORKFLOW, JOB, SECRET, MACHINE, TINKERBELL_MACHINE])
    reference = {"apiGroup": TINKERBELL_CLUSTER.group, "kind": "TinkerbellCluster", "name": "prod"}
    place = {"namespace": "default", "name": "prod"}
    world.add(CLUSTER, {"metadata": place, "spec": {"infrastructureRef": reference, **(cluster or {})}})
    world.add(TINKERBELL_CLUSTER, {"metadata": place, "spec": infrastructure or {}, "status": {"ready": True}})
    for number in range(servers):
        world.add(HARDWARE, server(f"s{number}", spec=BMC if bmc else {}))
    return world


def add_machine(world: World, name: str = "m", **changes: Any) -> TinkerbellMachine:
    value = b64encode(USER_DATA.encode()).decode()
    world.add(SECRET, {"metadata": {"namespace": "default", "name": f"{name}-data"}, "data": {"value": value}})
    infrastructure = {"apiGroup": TINKERBELL_MACHINE.group, "kind": "TinkerbellMachine", "name": name}
    spec = {
        "clusterName": "prod",
        "version": "v1.35.2",
        "bootstrap": {"dataSecretName": f"{name}-data"},
        "infrastructureRef": infrastructure,
    }
    owner = world.add(MACHINE, {"metadata": {"namespace": "default", "name": name}, "spec": spec})
    reference = {"apiVersion": MACHINE.api_version, "kind": "Machine", "name": name, "uid": owner.metadata.uid}
    metadata = {
        "namespace": "default",
        "name": name,
        "ownerReferences": [{**reference, "controller": True}],
        "labels": {"cluster.x-k8s.io/cluster-name": "prod"},
        **changes.pop("metadata", {}),
    }
    return world.add(
        TINKERBELL_MACHINE, {"metadata": metadata, "spec": {"bootOptions": {"bootMode": "netboot"}, **changes}}
    )


def get(world: World, name: str = "m") -> TinkerbellMachine:
    return world.require(TINKERBELL_MACHINE, "default", name)


def hardware(world: World, name: str = "s0") -> Hardware:
    return world.require(HARDWARE, "default", name)


def said(obj: TinkerbellMachine, type_: str = "Ready") -> tuple[str, str, str]:
    found = find_condition(obj.status.conditions, type_)
    assert found is not None, f"no condition {type_}"
    return found.status, found.reason, found.message


def delete(world: World, name: str = "m") -> None:
    world.remove(TINKERBELL_MACHINE, get(world, name))
