"""Servers as they really are, beside a world of objects that may be of an earlier time.

Power, disks and nodes are here; controllers are the real ones; BMCs, firmware and agents do what the product's own
rules tell them: netboot policy, and what the workflow service would hand out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ironbell.api.bmc import JOB
from ironbell.api.core.node import NodeCondition
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.template import Template
from ironbell.api.tinkerbell.workflow import Workflow, WorkflowAction, WorkflowTask
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_UP
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootSettings, netboot_plan
from ironbell.controllers.tink import render
from ironbell.controllers.tink.render import RENDER, Rendered
from ironbell.kube.testing import World
from ironbell.provisioner.lifecycle.names import provider_id
from ironbell.services.workflow import selection
from ironbell.services.workflow.guard import objection
from ironbell.services.workflow.selection import Serve
from ironbell.workload.nodes import NodeNow
from ironbell.workload.queries import NodeView
from support.servers.rendering import at_once
from support.servers.wipereports import wipe_action

SETTINGS = NetbootSettings(osie_url="http://x", grpc_authority="x:1")


class Renderer:
    """One task with one action, named as the Workflow."""

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        action = WorkflowAction(id="", name=name, image="x", timeout=60)
        return Rendered([WorkflowTask(name="t", id="", agent_id=variables["device_1"], actions=[action])])

    async def media_url(self, text: str, hardware: Hardware) -> str:
        return text


def rendered(_world: World, arguments: Any) -> Any:
    return at_once(render.rendered(Renderer(), arguments))


PERFORMERS = {RENDER: rendered}


@dataclass
class Server:
    """One machine."""

    is_on: bool = False
    in_memory_os: bool = False
    disk: str = ""
    """Whose system is on it; empty: wiped."""
    node_since: str = ""


@dataclass
class Reality:
    """All machines, and everything that was done to them. A World's environment."""

    servers: dict[str, Server] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def __call__(self, world: World) -> None:
        for name in sorted(self.servers):
            self._bmc(world, name)
            self._agent(world, name)

    def power_cycle(self, world: World, name: str) -> None:
        """Somebody else does: the machine boots as it is told to."""
        server = self.servers[name]
        hardware = world.require(HARDWARE, "default", name)
        plan = netboot_plan(hardware, hardware.spec.interfaces[0], SETTINGS, address="192.0.2.1")
        server.is_on, server.in_memory_os = True, plan.allowed

    def _bmc(self, world: World, name: str) -> None:
        for job in world.list(JOB):
            if job.spec.machine_ref.name != f"bmc-{name}" or job.status.conditions:
                continue
            self.done.append(f"power {name}")
            self.servers[name].is_on = False
            if any(task.power_action == "on" for task in job.spec.tasks):
                self.power_cycle(world, name)
            world.set_status(JOB, job, {"conditions": [{"type": "Completed", "status": "True", "message": ""}]})

    def _agent(self, world: World, name: str) -> None:
        server = self.servers[name]
        if not (server.is_on and server.in_memory_os):
            return
        directory = HardwareDirectory()
        for hardware in world.list(HARDWARE):
            directory.upsert(hardware)
        workflows = [one for one in world.list(WORKFLOW) if one.spec.hardware_ref == name]
        for agent_id in {one.status.agent_id for one in workflows}:
            choice = selection.choose(workflows, [agent_id])
            if isinstance(choice, Serve) and objection(choice.workflow, agent_id, directory) is None:
                self._carry_out(world, name, choice.workflow)

    def _carry_out(self, world: World, name: str, workflow: Workflow) -> None:
        server, now = self.servers[name], rfc3339(world.now())
        wipes = workflow.metadata.name.endswith("-wipe")
        self.done.append(f"{'wipe' if wipes else 'install'} {name}")
        server.disk = "" if wipes else workflow.metadata.name
        server.node_since = "" if wipes else now
        server.in_memory_os = False
        tasks = msgspec.to_builtins(workflow.status.tasks)
        tasks[0]["actions"][0] |= {"state": "SUCCESS", "message": "done", "executionStop": now}
        if wipes:
            tasks[0]["actions"][0] |= wipe_action(world.require(HARDWARE, "default", name))
        world.set_status(WORKFLOW, workflow, {"state": "POST", "tasks": tasks})
        if not wipes:
            hardware = world.require(HARDWARE, "default", name)
            world.change(HARDWARE, hardware, {"metadata": {"annotations": {INSTALLED_SYSTEM_UP: now}}})

    def node(self, world: World, asked: NodeNow) -> NodeView | None:
        """What the cluster itself says of a node; nodes have the names of their machines."""
        for name, server in self.servers.items():
            if server.disk == asked.name and server.node_since:
                hardware = world.require(HARDWARE, "default", name)
                ready = NodeCondition(type="Ready", status="True" if server.is_on else "Unknown")
                return NodeView(
                    asked.name,
                    provider_id=provider_id(hardware),
                    conditions=(ready,),
                    creation_timestamp=server.node_since,
                )
        return None
