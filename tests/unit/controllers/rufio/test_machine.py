from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.bmc.machine import MACHINE, PowerState
from ironbell.api.bmc.task import TASK
from ironbell.api.core.secret import SECRET_METADATA
from ironbell.bmc.driver import BmcProblem
from ironbell.controllers.rufio.names import ANNOTATION_ATTEMPT
from ironbell.kube.testing import crash_check


def contactable(scene: Any) -> tuple[str, str]:
    condition: tuple[str, str] = scene.outcome(scene.the_machine())["Contactable"]
    return condition


def test_the_power_state_is_asked_and_shown(scene: Any) -> None:
    scene.machine()
    end = crash_check(scene.machines, scene.world)
    machine = end.list(scene.machines.declaration.kind)[0]
    assert machine.status.power_state == "off"
    assert [(c.type, c.status, c.message) for c in machine.status.conditions] == [("Contactable", "True", "")]
    assert machine.status.conditions[0].last_update_time is not None


def test_it_is_asked_again_each_half_hour_and_writes_only_changes(scene: Any) -> None:
    scene.machine()
    scene.settle()
    version, logins = scene.world.api.version, scene.bmc.logins
    scene.settle(horizon_s=1900)
    assert (scene.world.api.version, scene.bmc.logins) == (version, logins + 1)
    scene.bmc.power = PowerState.ON
    scene.settle(horizon_s=1900)
    assert scene.the_machine().status.power_state == "on"


@pytest.mark.parametrize("problem", [BmcProblem.UNREACHABLE, BmcProblem.CERTIFICATE])
def test_a_bmc_that_goes_and_comes_back_is_seen_without_anybody_doing_anything(scene: Any, problem: BmcProblem) -> None:
    scene.machine()
    scene.settle()
    scene.bmc.problem = problem
    scene.settle(horizon_s=1900)
    status, message = contactable(scene)
    assert status == "False"
    assert message.startswith(f"{problem}: 10.0.0.1")
    assert scene.the_machine().status.power_state == "unknown"
    scene.bmc.problem = None
    scene.settle(horizon_s=61)
    assert contactable(scene) == ("True", "")
    assert [event.reason for event in scene.world.emitted] == [problem, "Contactable"]


def test_a_wrong_password_is_tried_twice_an_hour_and_at_once_when_corrected(scene: Any) -> None:
    scene.machine()
    scene.bmc.problem = BmcProblem.AUTHENTICATION
    scene.settle(horizon_s=1700)
    assert (contactable(scene)[0], scene.bmc.logins) == ("False", 1)
    assert "authSecretRef" in contactable(scene)[1]
    scene.settle(horizon_s=1900)
    assert scene.bmc.logins == 2
    secret = scene.world.require(SECRET_METADATA, "default", "s1")
    scene.world.change(SECRET_METADATA, secret, {"metadata": {"labels": {"new": "yes"}}})
    scene.bmc.problem = None
    scene.settle()
    assert contactable(scene) == ("True", "")


def test_a_missing_secret_is_named_and_used_when_it_appears(scene: Any) -> None:
    scene.world.remove(SECRET_METADATA, scene.world.require(SECRET_METADATA, "default", "s1"))
    scene.bmc.problem = BmcProblem.CREDENTIALS
    scene.machine()
    scene.settle(horizon_s=5000)
    assert contactable(scene)[1].startswith("BMCCredentialsMissing")
    scene.bmc.problem = None
    scene.secret()
    scene.settle()
    assert contactable(scene) == ("True", "")


def test_the_power_state_follows_a_task_at_once(scene: Any) -> None:
    scene.machine()
    scene.settle()
    scene.job("j1", {"powerAction": "on"})
    scene.settle(horizon_s=10)
    assert scene.the_machine().status.power_state == "on"
    scene.job("j2", {"powerAction": "off"})
    scene.settle(horizon_s=10)
    assert scene.the_machine().status.power_state == "off"


def test_only_what_a_task_did_to_the_bmc_wakes_its_machine(scene: Any) -> None:
    """A Task is written some ten times, and most of that is about itself."""
    watch = next(one for one in scene.machines.declaration.watches if one.kind is TASK)
    scene.machine()
    first = scene.task({"powerAction": "on"})
    second = scene.world.set_status(TASK, first, {"startTime": "2026-01-01T00:00:00Z"})
    attempt = {"metadata": {"annotations": {ANNOTATION_ATTEMPT: "{}"}}}
    third = scene.world.change(TASK, second, attempt)
    assert [watch.relevant(*step) for step in ((first, second), (second, third), (third, None))] == [False, True, True]


def test_the_condition_keeps_the_time_of_its_last_change(scene: Any) -> None:
    scene.machine()
    scene.settle()
    before = scene.the_machine().status.conditions[0].last_update_time
    scene.bmc.power = PowerState.ON
    scene.settle(horizon_s=1900)
    assert scene.the_machine().status.conditions[0].last_update_time == before


def test_a_task_that_may_log_in_again_ends_the_wait_after_a_refused_login(scene: Any) -> None:
    """An account that was locked for a while: nobody has to touch the Secret."""
    scene.machine()
    scene.bmc.problem = BmcProblem.AUTHENTICATION
    scene.settle(horizon_s=5)
    assert contactable(scene)[0] == "False"
    scene.bmc.problem = None
    scene.job("j1", {"powerAction": "on"})
    scene.settle(horizon_s=30)
    assert scene.bmc.done == ["power on"]
    assert contactable(scene) == ("True", "")
    assert scene.the_machine().status.power_state == "on"


def test_why_a_goal_is_not_reached_is_said(scene: Any) -> None:
    scene.bmc.unknown = 1
    scene.bmc.ignores = {"power on"}
    scene.task({"powerAction": "on"})
    scene.world.settle(scene.tasks, horizon_s=10)
    assert scene.outcome(scene.the_task())["Completed"] == ("False", "BMCOutcomeUnknown: 10.0.0.1: connection reset")
    scene.bmc.ignores = set()
    scene.world.settle(scene.tasks, horizon_s=30)
    assert scene.outcome(scene.the_task())["Completed"] == ("True", "")


def test_options_of_drivers_that_do_not_exist_are_listed_and_named_where_the_bmc_does_not_answer(scene: Any) -> None:
    machine = scene.machine()
    options = {"spec": {"connection": {"providerOptions": {"ipmitool": {"port": 623}}}}}
    scene.world.change(MACHINE, machine, options)
    scene.bmc.problem = BmcProblem.UNREACHABLE
    scene.settle()
    told = "spec.connection.providerOptions.ipmitool has no effect: the redfish driver is used, on port 443"
    assert told in contactable(scene)[1]
    status, message = scene.outcome(scene.the_machine())["FieldsWithoutEffect"]
    assert status == "True"
    assert message.startswith(told)
    scene.world.change(MACHINE, scene.the_machine(), {"spec": {"connection": {"providerOptions": None}}})
    scene.bmc.problem = None
    scene.settle(horizon_s=61)
    assert [one.type for one in scene.the_machine().status.conditions] == ["Contactable"]
