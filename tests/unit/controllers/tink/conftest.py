"""A scene for the controllers of the group `tinkerbell.org`: objects, a small template engine, an agent and a BMC."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import pytest

from ironbell.api.bmc.job import JOB, Job
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.api.tinkerbell.template import TEMPLATE, Template
from ironbell.api.tinkerbell.workflow import WORKFLOW, Workflow, WorkflowAction, WorkflowCondition, WorkflowTask
from ironbell.base.errors import IronbellError
from ironbell.controllers.tink import render
from ironbell.controllers.tink.render import RENDER, RENDER_JOB, TRY_RENDER, Rendered, RenderError
from ironbell.controllers.tink.workflow import WorkflowReconciler
from ironbell.kube.decision import Action, Decision
from ironbell.kube.testing import World
from support.servers.rendering import at_once

NAMESPACE = "default"
MAC = "02:00:00:00:00:01"


class SmallRenderer:
    """One line per task, `name agent: action[=timeout], ...`; a line `timeout N`; a line `error` does not render."""

    async def workflow(
        self, template: Template, hardware: Hardware | None, *, name: str, variables: Mapping[str, str]
    ) -> Rendered:
        tasks, timeout_s = [], 0
        for number, line in enumerate(template.spec.data.splitlines(), start=1):
            if line == "error":
                raise RenderError(f"template line {number}: map has no entry for key")
            if line.startswith("timeout "):
                timeout_s = int(line.split()[1])
                continue
            head, _, actions = (line + " ").partition(": ")
            task_name, agent_id = head.split()
            agent_id = variables.get(agent_id, agent_id)
            tasks.append(
                WorkflowTask(name=task_name, id="", agent_id=agent_id, actions=[_action(a) for a in actions.split(",")])
                if actions.strip()
                else WorkflowTask(name=task_name, id="", agent_id=agent_id, actions=[])
            )
        return Rendered(tasks, timeout_s)

    async def media_url(self, text: str, hardware: Hardware) -> str:
        if "missing" in text:
            raise RenderError("template line 1: can't evaluate field missing")
        return text.replace("{{ .Hardware.Name }}", hardware.metadata.name)


def _action(text: str) -> WorkflowAction:
    name, _, timeout = text.strip().partition("=")
    return WorkflowAction(id="", name=name, image=f"quay.io/actions/{name}", timeout=int(timeout or 0))


def _performer(
    good: Callable[[Any, Any], Coroutine[Any, Any, Sequence[Action]]],
    bad: Callable[[Any, IronbellError], Sequence[Action]],
) -> Callable[[World, Any], Sequence[Action]]:
    def perform(_world: World, arguments: Any) -> Sequence[Action]:
        try:
            return at_once(good(SmallRenderer(), arguments))
        except IronbellError as error:
            return bad(arguments, error)

    return perform


PERFORMERS = {
    RENDER: _performer(render.rendered, render.failed),
    TRY_RENDER: _performer(render.agent_rendered, render.no_agent),
    RENDER_JOB: _performer(render.job_rendered, render.job_failed),
}


@dataclass
class Scene:
    """A world with one machine, and what a test does to it."""

    world: World = field(default_factory=lambda: World(performers=PERFORMERS))
    reconciler: WorkflowReconciler = field(default_factory=WorkflowReconciler)

    def template(self, data: str = f"install {MAC}: stream, write", name: str = "t") -> Template:
        return self.world.add(TEMPLATE, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"data": data}})

    def hardware(self, name: str = "m1", *, bmc: str = "bmc1", uefi: bool = True, **more: Any) -> Hardware:
        spec: dict[str, Any] = {
            "interfaces": [
                {"dhcp": {"mac": MAC, "uefi": uefi}, "netboot": {"allowPXE": False, "allowWorkflow": True}},
                {"dhcp": {"mac": "02:00:00:00:00:02"}},
            ]
        }
        if bmc:
            spec["bmcRef"] = {"apiGroup": "bmc.tinkerbell.org", "kind": "Machine", "name": bmc}
        return self.world.add(HARDWARE, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {**spec, **more}})

    def workflow(self, name: str = "wf", *, annotations: dict[str, str] | None = None, **spec: Any) -> Workflow:
        body = {
            "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}},
            "spec": {"templateRef": "t", "hardwareRef": "m1", **spec},
        }
        return self.world.add(WORKFLOW, body)

    def settle(self, horizon_s: float = 0.0) -> Workflow | None:
        self.world.settle(self.reconciler, horizon_s=horizon_s)
        return self.world.get(WORKFLOW, NAMESPACE, "wf")

    def settled(self, horizon_s: float = 0.0) -> Workflow:
        found = self.settle(horizon_s)
        assert found is not None
        return found

    @property
    def current(self) -> Workflow:
        return self.world.require(WORKFLOW, NAMESPACE, "wf")

    def decide(self, name: str = "wf") -> Decision | None:
        return self.world.decide(self.reconciler, (NAMESPACE, name))

    def now(self) -> datetime:
        return self.world.now()

    def pxe(self, name: str = "m1") -> list[bool | None]:
        hardware = self.world.require(HARDWARE, NAMESPACE, name)
        return [i.netboot.allow_pxe if i.netboot else None for i in hardware.spec.interfaces]

    def jobs(self) -> list[Job]:
        return list(self.world.list(JOB, NAMESPACE))

    def end_job(self, name: str, kind: str = "Completed", message: str = "") -> None:
        job = self.world.require(JOB, NAMESPACE, name)
        conditions = [{"type": kind, "status": "True", "message": message}]
        self.world.set_status(JOB, job, {"conditions": conditions})

    def report(self, number: int, state: str, message: str = "", *, task: int = 0, of: str = "wf") -> None:
        """What the workflow service writes when an agent reports on an action."""
        report(self.world, self.world.require(WORKFLOW, NAMESPACE, of), number, state, message, task=task)

    def condition(self, kind: str = "Succeeded") -> WorkflowCondition:
        return next(c for c in self.current.status.conditions if c.type == kind)

    def events(self) -> list[str]:
        return [event.reason for event in self.world.emitted]


def report(world: World, workflow: Workflow, number: int, state: str, message: str = "", *, task: int = 0) -> None:
    tasks = msgspec.to_builtins(workflow.status.tasks)
    action = tasks[task]["actions"][number]
    action |= {"state": state, "message": message}
    last = task == len(tasks) - 1 and number == len(tasks[task]["actions"]) - 1
    moved = ("POST" if last else "RUNNING") if state == "SUCCESS" else ("RUNNING" if state == "RUNNING" else state)
    current = {
        "agentID": tasks[task]["agentID"],
        "taskID": tasks[task]["id"],
        "actionID": action["id"],
        "state": state,
        "actionName": action["name"],
        "taskName": tasks[task]["name"],
    }
    if state == "PENDING":
        moved = workflow.status.state
    world.set_status(WORKFLOW, workflow, {"state": moved, "currentState": current, "tasks": tasks})


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="session")
def make_scene() -> type[Scene]:
    return Scene
