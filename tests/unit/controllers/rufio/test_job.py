from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ironbell.api.bmc.job import JOB
from ironbell.api.bmc.machine import MACHINE, PowerState
from ironbell.api.bmc.task import TASK
from ironbell.bmc.driver import BmcProblem
from ironbell.kube.testing import crash_check

EVERYTHING = ["power off", "boot device pxe", "power on"]


def test_operations_are_done_in_order_each_once(scene: Any) -> None:
    scene.bmc.power = PowerState.ON
    scene.machine()
    scene.job()
    scene.settle(horizon_s=60)
    assert scene.bmc.done == EVERYTHING
    job = scene.the_job()
    assert scene.outcome(job) == {"Running": ("True", ""), "Completed": ("True", "")}
    assert job.status.start_time is not None
    assert job.status.completion_time is not None
    tasks = scene.world.list(TASK)
    assert [task.metadata.name for task in tasks] == ["j1-task-0", "j1-task-1", "j1-task-2"]
    assert tasks[0].metadata.labels == {"owner-name": "j1"}
    assert tasks[0].metadata.owner_references[0].uid == job.metadata.uid
    body = scene.world.api.objects[TASK.collection]["default", "j1-task-0"]
    assert body["spec"]["connection"] == {
        "host": "bmc1",
        "authSecretRef": {"name": "s1", "namespace": "default"},
        "insecureTLS": False,
    }


def test_a_job_survives_a_crash_anywhere_with_one_power_on(scene: Any) -> None:
    scene.bmc.power = PowerState.ON
    scene.machine()
    scene.job()
    end = crash_check(
        [scene.machines, scene.jobs, scene.tasks],
        scene.world,
        horizon_s=60,
        ignore=["metadata.annotations", "status.conditions"],
        outside=lambda bmcs: bmcs["bmc1"].power,
    )
    assert end.outside["bmc1"].done == EVERYTHING


def test_the_first_task_that_fails_ends_the_job_with_its_message(scene: Any) -> None:
    scene.machine()
    scene.job()
    scene.bmc.problem = BmcProblem.AUTHENTICATION
    scene.settle(horizon_s=700)
    job = scene.the_job()
    status, message = scene.outcome(job)["Failed"]
    assert status == "True"
    assert message.startswith("Task default/j1-task-0 failed: 10.0.0.1: authentication")
    assert job.status.completion_time is None
    assert len(scene.world.list(TASK)) == 1


def test_a_missing_machine_is_waited_for(scene: Any) -> None:
    scene.job()
    scene.settle()
    assert scene.outcome(scene.the_job())["Running"] == ("False", "Machine default/bmc1 does not exist. Create it.")
    scene.machine()
    scene.settle(horizon_s=60)
    assert scene.outcome(scene.the_job())["Completed"][0] == "True"


def test_jobs_for_one_machine_go_one_after_the_other(scene: Any) -> None:
    scene.bmc.power = PowerState.ON
    scene.machine()
    scene.job("b")
    scene.world.clock.advance(1)
    scene.job("a", {"powerAction": "off"})
    scene.bmc.problem = BmcProblem.UNREACHABLE
    scene.settle()
    running = scene.outcome(scene.the_job("a"))["Running"]
    assert running == ("False", "Waiting for Job b, which uses Machine bmc1.")
    scene.bmc.problem = None
    scene.settle(horizon_s=60)
    assert scene.bmc.done == [*EVERYTHING, "power off"]
    assert scene.outcome(scene.the_job("a"))["Completed"][0] == "True"


def test_jobs_for_two_machines_do_not_wait_for_each_other(scene: Any) -> None:
    scene.machine("bmc1")
    scene.machine("bmc2")
    scene.world.outside["bmc1"].problem = BmcProblem.UNREACHABLE
    scene.job("a")
    scene.job("b", machine="bmc2")
    scene.settle(horizon_s=60)
    assert "Completed" in scene.outcome(scene.the_job("b"))
    assert "Completed" not in scene.outcome(scene.the_job("a"))
    assert "unreachable" in scene.outcome(scene.the_job("a"))["Running"][1]


def test_the_claim_of_a_job_that_is_gone_counts_for_nothing(scene: Any) -> None:
    scene.machine()
    scene.bmc.problem = BmcProblem.UNREACHABLE
    scene.job("a")
    scene.settle()
    assert scene.the_machine().metadata.annotations["ironbell.dev/bmc-job"].startswith("default/a/")
    scene.world.remove(JOB, scene.the_job("a"))
    scene.bmc.problem = None
    scene.job("b")
    scene.settle(horizon_s=60)
    assert "Completed" in scene.outcome(scene.the_job("b"))
    assert [task.metadata.name.split("-")[0] for task in scene.world.list(TASK)] == ["b", "b", "b"]


def test_a_task_of_an_earlier_job_of_the_name_is_replaced(scene: Any) -> None:
    scene.machine()
    owner = {"apiVersion": JOB.api_version, "kind": "Job", "name": "j1", "uid": "gone", "controller": True}
    metadata = {
        "name": "j1-task-0",
        "namespace": "default",
        "labels": {"owner-name": "j1"},
        "ownerReferences": [owner],
    }
    old = scene.world.add(
        TASK,
        {
            "metadata": metadata,
            "spec": {"task": {"powerAction": "off"}, "connection": scene.connection()},
            "status": {"conditions": [{"type": "Completed", "status": "True"}]},
        },
    )
    scene.bmc.power = PowerState.ON
    scene.job("j1", {"powerAction": "off"})
    scene.settle(horizon_s=60)
    (task,) = scene.world.list(TASK)
    assert task.metadata.uid != old.metadata.uid
    assert scene.bmc.done == ["power off"]


def test_a_job_that_ended_is_left_alone(scene: Any) -> None:
    scene.machine()
    scene.job("j1", {"powerAction": "on"})
    scene.settle(horizon_s=60)
    for task in scene.world.list(TASK):
        scene.world.remove(TASK, task)
    before = scene.world.api.version
    scene.settle()
    assert scene.world.api.version == before


def test_the_policy_for_unknown_outcomes_reaches_the_tasks(scene: Any) -> None:
    scene.machine()
    scene.job("j1", {"powerAction": "cycle"}, annotations={"ironbell.dev/on-unknown-outcome": "retry"})
    scene.bmc.unknown = 1
    scene.settle(horizon_s=60)
    assert scene.outcome(scene.the_job())["Completed"][0] == "True"
    assert scene.bmc.done == ["power cycle"] * 2


STEPS = ["settle", "later", "unreachable", "reachable", "unknown", "second job", "machine gone", "machine back"]


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=15))
def test_in_whatever_order_things_happen_a_job_switches_on_once(make_scene: Any, steps: list[str]) -> None:
    scene = make_scene()
    scene.secret()
    scene.bmc.power = PowerState.ON
    scene.machine()
    scene.job()
    for step in [*steps, "reachable", "machine back", "later", "later"]:
        _do(scene, step)
    assert scene.bmc.done.count("power on") <= len(scene.world.list(JOB))
    for job in scene.world.list(JOB):
        assert {"Completed", "Failed"} & set(scene.outcome(job))
    assert not scene.world.errors


def _do(scene: Any, step: str) -> None:
    if step in ("settle", "later"):
        scene.settle(horizon_s=0 if step == "settle" else 1000)
    elif step == "unreachable":
        scene.bmc.problem = BmcProblem.UNREACHABLE
    elif step == "reachable":
        scene.bmc.problem = None
    elif step == "unknown":
        scene.bmc.unknown = 1
    elif step == "second job" and scene.world.get(JOB, "default", "j2") is None:
        scene.job("j2", {"powerAction": "off"})
    elif step == "machine gone" and scene.world.get(MACHINE, "default", "bmc1") is not None:
        scene.world.remove(MACHINE, scene.the_machine())
    elif step == "machine back" and scene.world.get(MACHINE, "default", "bmc1") is None:
        scene.machine()


def test_the_disabled_annotation_stops_a_job_and_no_other(scene: Any) -> None:
    scene.machine()
    scene.job(annotations={"tinkerbell.org/disabled": ""})
    scene.settle()
    assert scene.world.list(TASK) == []
    scene.job("j2", {"powerAction": "on"})
    scene.settle(horizon_s=60)
    assert "Completed" in scene.outcome(scene.the_job("j2"))
