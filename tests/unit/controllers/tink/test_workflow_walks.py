"""Whatever happens, and in whatever order: a Workflow goes only along the table, and never leaves a terminal state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.api.bmc.job import JOB
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.api.tinkerbell.template import TEMPLATE
from ironbell.api.tinkerbell.workflow import WORKFLOW
from ironbell.controllers.tink.states import TERMINAL, TRANSITIONS
from ironbell.controllers.tink.workflow import HANDLERS

MODES = ["", "netboot", "isoboot", "customboot", "floppy"]
STEPS = [
    "settle", "later", "much later", "job done", "job failed", "job gone", "hardware gone", "hardware back",
    "template gone", "fetch", "run", "succeed", "fail", "time out", "begin again", "delete", "disable", "enable",
]  # fmt: skip


def states_seen(world: Any) -> Iterator[str]:
    """Every state that was stored, in order."""
    import msgspec

    for where, _namespace, event in world.api.history:
        if where == WORKFLOW.collection:
            yield msgspec.json.decode(event.body).get("status", {}).get("state", "")


def step(scene: Any, name: str) -> None:
    world = scene.world
    workflow = world.get(WORKFLOW, "default", "wf")
    if name == "settle":
        world.settle(scene.reconciler)
    elif name in ("later", "much later"):
        world.settle(scene.reconciler, horizon_s=100 if name == "later" else 1e5)
    elif name.startswith("job"):
        for job in world.list(JOB):
            _job(scene, job, name)
    elif name == "hardware gone":
        for hardware in world.list(HARDWARE):
            world.remove(HARDWARE, hardware)
    elif name == "hardware back" and world.get(HARDWARE, "default", "m1") is None:
        scene.hardware()
    elif name == "template gone":
        for template in world.list(TEMPLATE):
            world.remove(TEMPLATE, template)
    elif workflow is not None:
        _workflow(scene, workflow, name)


def _job(scene: Any, job: Any, name: str) -> None:
    if name == "job gone":
        scene.world.remove(JOB, job)
    elif not job.status.conditions:
        scene.end_job(job.metadata.name, "Completed" if name == "job done" else "Failed", "as told")


def _workflow(scene: Any, workflow: Any, name: str) -> None:
    world = scene.world
    if name == "delete":
        world.remove(WORKFLOW, workflow)
    elif name in ("disable", "enable"):
        world.change(WORKFLOW, workflow, {"spec": {"disabled": name == "disable"}})
    elif workflow.status.state in ("PENDING", "RUNNING") and workflow.status.tasks:
        if name == "begin again" and workflow.status.state == "RUNNING":
            world.set_status(WORKFLOW, workflow, {"state": "PENDING", "currentState": None})
        reported = {"fetch": "PENDING", "run": "RUNNING", "succeed": "SUCCESS", "fail": "FAILED", "time out": "TIMEOUT"}
        if name in reported:
            states = [action.state for action in workflow.status.tasks[0].actions]
            scene.report(next((n for n, s in enumerate(states) if s != "SUCCESS"), 0), reported[name])


@settings(max_examples=150, deadline=None)
@given(
    mode=st.sampled_from(MODES),
    toggle=st.booleans(),
    timeout=st.sampled_from([0, 50, 5000]),
    steps=st.lists(st.sampled_from(STEPS), max_size=25),
)
def test_random_walks_stay_in_the_table(
    make_scene: Any, mode: str, toggle: bool, timeout: int, steps: list[str]
) -> None:
    scene = make_scene()
    scene.template(f"timeout {timeout}\ninstall m: stream=10, write")
    scene.hardware()
    actions = {"preparingActions": [{"powerAction": "cycle"}], "postActions": [{"powerAction": "off"}]}
    options = {"toggleAllowNetboot": toggle, "bootMode": mode, "isoURL": "http://a", "custombootConfig": actions}
    scene.workflow(bootOptions=options)
    for name in [*steps, "settle"]:
        step(scene, name)
    seen = list(states_seen(scene.world))
    for before, after in itertools.pairwise(seen):
        assert before == after or (before, after) in TRANSITIONS
    assert not scene.world.errors
    hardware = scene.world.get(HARDWARE, "default", "m1")
    workflow = scene.world.get(WORKFLOW, "default", "wf")
    if toggle and hardware is not None and (workflow is None or workflow.status.state in TERMINAL):
        assert scene.pxe() != [True, True]


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sampled_from(["settle", "later", "job done", "fetch", "run", "succeed"]), max_size=20))
def test_a_machine_is_powered_on_by_one_job_at_most(make_scene: Any, steps: list[str]) -> None:
    scene = make_scene()
    scene.template()
    scene.hardware()
    scene.workflow(bootOptions={"toggleAllowNetboot": True, "bootMode": "netboot"})
    for name in [*steps, "settle"]:
        step(scene, name)
    made = [event for where, _, event in scene.world.api.history if where == JOB.collection]
    assert [event.type.value for event in made].count("ADDED") == 1


def test_every_state_has_a_handler_and_terminal_states_have_no_way_out() -> None:
    named = {state for edge in TRANSITIONS for state in edge}
    assert named | {"STATE_PENDING"} == set(HANDLERS)
    assert not [edge for edge in TRANSITIONS if edge[0] in TERMINAL]
