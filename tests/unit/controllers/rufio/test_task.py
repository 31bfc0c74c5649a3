from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.machine import PowerState
from ironbell.api.bmc.task import TASK
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.bmc.driver import BmcProblem
from ironbell.controllers.rufio.task import TaskReconciler
from ironbell.kube.testing import crash_check

ATTEMPT = "metadata.annotations"


def ended(scene: Any, horizon_s: float = 700) -> dict[str, tuple[str, str]]:
    scene.world.settle(scene.tasks, horizon_s=horizon_s, max_rounds=5000)
    outcome: dict[str, tuple[str, str]] = scene.outcome(scene.the_task())
    return outcome


@pytest.mark.parametrize(
    ("action", "before", "after", "done"),
    [
        ("on", PowerState.OFF, PowerState.ON, ["power on"]),
        ("on", PowerState.ON, PowerState.ON, []),
        ("off", PowerState.ON, PowerState.OFF, ["power off"]),
        ("off", PowerState.OFF, PowerState.OFF, []),
        ("soft", PowerState.ON, PowerState.OFF, ["power soft"]),
        ("cycle", PowerState.ON, PowerState.ON, ["power cycle"]),
        ("reset", PowerState.ON, PowerState.ON, ["power reset"]),
        ("status", PowerState.ON, PowerState.ON, []),
    ],
)
def test_power_actions_reach_their_state_and_are_sent_once(
    scene: Any, action: str, before: PowerState, after: PowerState, done: list[str]
) -> None:
    scene.bmc.power = before
    scene.task({"powerAction": action})
    assert ended(scene)["Completed"][0] == "True"
    assert (scene.bmc.power, scene.bmc.done) == (after, done)
    assert scene.the_task().status.completion_time is not None
    assert scene.the_task().status.start_time is not None


def test_defect_21_the_power_status_is_answered(scene: Any) -> None:
    scene.task({"powerAction": "status"})
    assert ended(scene) == {"Completed": ("True", "The power is off.")}


@pytest.mark.parametrize(
    ("action", "done"),
    [
        ({"bootDevice": {"device": "pxe", "persistent": True, "efiBoot": True}}, "boot device pxe"),
        ({"oneTimeBootDeviceAction": {"device": ["disk", "pxe"]}}, "boot device disk"),
        ({"virtualMediaAction": {"mediaURL": "http://a?token=x", "kind": "CD"}}, "insert virtual media"),
        ({"virtualMediaAction": {"kind": "CD"}}, "eject virtual media"),
    ],
)
def test_settings_are_done_when_the_bmc_accepts_them(scene: Any, action: Any, done: str) -> None:
    scene.task(action)
    assert ended(scene)["Completed"][0] == "True"
    assert scene.bmc.done == [done]


@pytest.mark.parametrize("action", ["on", "off", "soft"])
def test_goals_survive_a_crash_anywhere(scene: Any, action: str) -> None:
    scene.bmc.power = PowerState.OFF if action == "on" else PowerState.ON
    scene.task({"powerAction": action})
    end = crash_check(
        TaskReconciler(), scene.world, horizon_s=30, ignore=[ATTEMPT], outside=lambda bmcs: bmcs["bmc1"].power
    )
    assert end.outside["bmc1"].done == [f"power {action}"]


@pytest.mark.parametrize("action", [{"bootDevice": {"device": "pxe"}}, {"virtualMediaAction": {"kind": "CD"}}])
def test_settings_survive_a_crash_anywhere(scene: Any, action: Any) -> None:
    scene.task(action)
    crash_check(TaskReconciler(), scene.world, horizon_s=30, ignore=[ATTEMPT])


@pytest.mark.parametrize("action", ["cycle", "reset"])
def test_pulses_with_the_policy_retry_survive_a_crash_anywhere(scene: Any, action: str) -> None:
    scene.task({"powerAction": action}, annotations={"ironbell.dev/on-unknown-outcome": "retry"})
    crash_check(TaskReconciler(), scene.world, horizon_s=30, ignore=[ATTEMPT])


@pytest.mark.parametrize("action", ["cycle", "reset"])
def test_a_pulse_whose_outcome_is_unknown_fails_and_is_not_sent_twice(scene: Any, action: str) -> None:
    scene.bmc.unknown = 1
    scene.task({"powerAction": action})
    status, message = ended(scene)["Failed"]
    assert status == "True"
    assert "is unknown" in message
    assert "connection reset" in message
    assert scene.bmc.done == [f"power {action}"]


def test_a_goal_whose_outcome_is_unknown_is_looked_at(scene: Any) -> None:
    scene.bmc.unknown = 1
    scene.task({"powerAction": "on"})
    assert ended(scene)["Completed"][0] == "True"
    assert scene.bmc.done == ["power on"]


def test_defect_20_a_bmc_that_reboots_is_waited_for(scene: Any) -> None:
    scene.bmc.problem, scene.bmc.problem_left = BmcProblem.UNREACHABLE, 8
    scene.task({"powerAction": "on"})
    scene.world.settle(scene.tasks)
    assert scene.outcome(scene.the_task())["Completed"] == ("False", "BMCUnreachable: 10.0.0.1: unreachable")
    assert ended(scene) == {"Completed": ("True", "")}


def test_a_setting_waits_for_a_bmc_that_reboots(scene: Any) -> None:
    scene.bmc.problem, scene.bmc.problem_left = BmcProblem.UNREACHABLE, 5
    scene.task({"bootDevice": {"device": "pxe"}})
    assert ended(scene) == {"Completed": ("True", "")}
    assert scene.bmc.done == ["boot device pxe"]


@pytest.mark.parametrize("action", [{"powerAction": "on"}, {"bootDevice": {"device": "pxe"}}])
def test_a_bmc_that_stays_away_fails_the_task_after_ten_minutes(scene: Any, action: Any) -> None:
    scene.bmc.problem = BmcProblem.UNREACHABLE
    scene.task(action)
    assert "Failed" not in ended(scene, horizon_s=590)
    status, message = ended(scene, horizon_s=600)["Failed"]
    assert status == "True"
    assert "timeout" in message
    assert "unreachable" in message


@pytest.mark.parametrize("action", [{"powerAction": "on"}, {"bootDevice": {"device": "pxe"}}])
def test_a_wrong_password_is_tried_three_times_and_names_the_secret(scene: Any, action: Any) -> None:
    scene.bmc.problem = BmcProblem.AUTHENTICATION
    scene.task(action)
    message = ended(scene)["Failed"][1]
    assert scene.bmc.logins == 3
    assert "authSecretRef" in message


@pytest.mark.parametrize("action", [{"powerAction": "on"}, {"bootDevice": {"device": "pxe"}}])
def test_a_corrected_password_is_tried_at_once(scene: Any, action: Any) -> None:
    scene.bmc.problem = BmcProblem.AUTHENTICATION
    scene.task(action)
    scene.world.settle(scene.tasks)
    secret = scene.world.require(SECRET_METADATA, "default", "s1")
    scene.world.change(SECRET_METADATA, secret, {"metadata": {"labels": {"new": "yes"}}})
    scene.bmc.problem = None
    assert ended(scene, horizon_s=5)["Completed"][0] == "True"


def test_a_missing_secret_is_waited_for(scene: Any) -> None:
    scene.bmc.problem = BmcProblem.CREDENTIALS
    scene.world.remove(SECRET_METADATA, scene.world.require(SECRET_METADATA, "default", "s1"))
    scene.task({"powerAction": "on"})
    scene.world.settle(scene.tasks)
    assert scene.outcome(scene.the_task())["Completed"][1].startswith("BMCCredentialsMissing")
    scene.bmc.problem = None
    scene.secret()
    assert ended(scene, horizon_s=5)["Completed"][0] == "True"


@pytest.mark.parametrize("problem", [BmcProblem.CERTIFICATE, BmcProblem.REJECTED])
@pytest.mark.parametrize("action", [{"powerAction": "on"}, {"bootDevice": {"device": "pxe"}}])
def test_what_trying_again_cannot_help_fails_at_once(scene: Any, problem: BmcProblem, action: Any) -> None:
    scene.bmc.problem = problem
    scene.task(action)
    assert ended(scene, horizon_s=1)["Failed"][0] == "True"
    assert scene.bmc.logins == 1


def test_an_untrusted_certificate_names_both_remedies(scene: Any) -> None:
    scene.bmc.problem = BmcProblem.CERTIFICATE
    scene.task({"powerAction": "on"})
    message = ended(scene)["Failed"][1]
    assert "insecureTLS" in message
    assert "ca.crt" in message


def test_an_accepted_power_on_that_is_forgotten_is_sent_again_each_minute(scene: Any) -> None:
    scene.bmc.ignores = {"power on"}
    scene.task({"powerAction": "on"})
    ended(scene, horizon_s=130)
    assert scene.bmc.done == ["power on"] * 3
    assert "the power state did not change" in ended(scene)["Failed"][1]


def test_a_soft_off_that_is_ignored_is_sent_once_and_never_becomes_hard(scene: Any) -> None:
    scene.bmc.power = PowerState.ON
    scene.bmc.ignores = {"power soft"}
    scene.task({"powerAction": "soft"})
    assert ended(scene)["Failed"][0] == "True"
    assert scene.bmc.done == ["power soft"]


@pytest.mark.parametrize(
    ("action", "field"),
    [({}, "no action specified"), ({"powerAction": "nmi"}, "nmi"), ({"bootDevice": {}}, "boot device")],
)
def test_an_action_that_nobody_can_do_fails_naming_it(scene: Any, action: Any, field: str) -> None:
    scene.task(action)
    assert field in ended(scene)["Failed"][1]


def test_a_task_without_connection_fails(scene: Any) -> None:
    spec = {"task": {"powerAction": "on"}}
    scene.world.add(TASK, {"metadata": {"name": "t1", "namespace": "default"}, "spec": spec})
    assert "spec.connection" in ended(scene)["Failed"][1]


def test_a_finished_task_is_left_alone(scene: Any) -> None:
    scene.task({"powerAction": "on"})
    ended(scene)
    before = scene.world.api.version
    scene.bmc.power = PowerState.OFF
    ended(scene)
    assert (scene.world.api.version, scene.bmc.done) == (before, ["power on"])
