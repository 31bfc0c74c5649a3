"""The recorded address of a BMC: before a password is sent, and after somebody has changed the Machine."""

from __future__ import annotations

from typing import Any

from ironbell.api.bmc.machine import MACHINE
from ironbell.bmc.driver import BmcProblem
from ironbell.kube.testing import crash_check
from ironbell.provisioner.bmc_address import ADDRESS, CONFIRMED


def recorded(scene: Any) -> str:
    return str(scene.the_machine().metadata.annotations.get(ADDRESS, ""))


def change(scene: Any, host: str, **annotations: str) -> None:
    """As somebody does who may change Machines."""
    body = {"spec": {"connection": {"host": host}}, "metadata": {"annotations": annotations}}
    scene.world.change(MACHINE, scene.the_machine(), body)


def contactable(scene: Any) -> tuple[str, str]:
    found: tuple[str, str] = scene.outcome(scene.the_machine())["Contactable"]
    return found


def test_the_address_is_recorded_before_the_first_login(scene: Any) -> None:
    scene.machine()
    end = crash_check(scene.machines, scene.world)
    assert end.list(MACHINE)[0].metadata.annotations[ADDRESS] == "bmc1"


def test_a_machine_that_nobody_logs_in_to_has_no_address_recorded(scene: Any) -> None:
    body = {"metadata": {"name": "bmc1", "namespace": "default"}}
    scene.world.add(MACHINE, {**body, "spec": {"connection": {"host": "bmc1", "insecureTLS": False}}})
    scene.settle()
    assert recorded(scene) == ""


def test_another_address_is_not_asked_until_it_is_confirmed(scene: Any) -> None:
    other = scene.world.outside["bmc2"]
    scene.machine()
    scene.settle()
    change(scene, "bmc2")
    scene.settle(horizon_s=4000)
    assert other.logins == 0
    status, message = contactable(scene)
    assert (status, recorded(scene)) == ("False", "bmc1")
    assert message.startswith(
        f"{BmcProblem.ADDRESS}: the password of Machine default/bmc1 is used with the BMC at bmc1, "
    )
    assert [event.reason for event in scene.world.emitted] == [BmcProblem.ADDRESS]
    change(scene, "bmc2", **{CONFIRMED: "BMC2"})
    scene.settle()
    assert (contactable(scene), recorded(scene)) == (("True", ""), "bmc2")
    assert other.logins == 1


def test_an_address_that_is_set_back_needs_no_confirmation(scene: Any) -> None:
    scene.machine()
    scene.settle()
    change(scene, "bmc2")
    scene.settle()
    change(scene, "bmc1")
    scene.settle()
    assert contactable(scene) == ("True", "")


def test_a_job_records_the_address_with_its_claim_and_waits_while_another_is_not_confirmed(scene: Any) -> None:
    scene.machine()
    scene.job("j1", {"powerAction": "on"})
    scene.world.settle(scene.jobs)
    assert recorded(scene) == "bmc1", "whichever of the controllers comes first"
    scene.settle(horizon_s=60)
    assert scene.outcome(scene.the_job())["Completed"][0] == "True"
    change(scene, "bmc2")
    scene.job("j2", {"powerAction": "off"})
    scene.settle(horizon_s=60)
    status, message = scene.outcome(scene.the_job("j2"))["Running"]
    assert status == "False"
    assert f"{CONFIRMED}=bmc2" in message
    assert scene.world.outside["bmc2"].logins == 0
    change(scene, "bmc2", **{CONFIRMED: "bmc2"})
    scene.settle(horizon_s=60)
    assert scene.outcome(scene.the_job("j2"))["Completed"][0] == "True"
