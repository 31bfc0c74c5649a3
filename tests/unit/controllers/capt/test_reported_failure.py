"""An installed system that reports that its bootstrap failed: the machine is not ready, whatever else is reported."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ironbell.api.cluster import MACHINE
from ironbell.api.tinkerbell import HARDWARE
from ironbell.base.clock import rfc3339
from ironbell.contract.servers.claim import INSTALLED_SYSTEM_FAILED, INSTALLED_SYSTEM_UP
from ironbell.kube.testing import World, crash_check
from ironbell.provisioner.installed_system import SystemFailure, encoded
from support.servers.captscene import MACHINES, Engine, add_machine, delete, get, hardware, said, scene

STAGE = "modules-final/config-scripts-user"
WHY = f"cloud-init failed in {STAGE}: running config-scripts-user"
OUTPUT = ["[preflight] Some fatal errors occurred:", "[ERROR Swap]: running with swap on is not supported"]
MESSAGE = f"Server s0: {WHY}. Its last lines:\n" + "\n".join(OUTPUT)


def booting() -> World:
    world = scene(Engine(reports=False))
    add_machine(world)
    world.settle(MACHINES)
    assert not get(world).status.ready
    return world


def annotate(world: World, **annotations: Any) -> None:
    world.change(HARDWARE, hardware(world), {"metadata": {"annotations": annotations}})
    world.settle(MACHINES)


def fail(world: World, *, ago_s: float = 0, output: list[str] | None = None) -> None:
    at = rfc3339(world.now() - timedelta(seconds=ago_s))
    failure = SystemFailure(at, STAGE, WHY, OUTPUT if output is None else output)
    annotate(world, **{INSTALLED_SYSTEM_FAILED: encoded(failure)})


def up(world: World) -> None:
    annotate(world, **{INSTALLED_SYSTEM_UP: rfc3339(world.now())})


def test_module_and_last_lines_are_in_the_conditions() -> None:
    world = booting()
    fail(world)
    assert said(get(world)) == ("False", "BootstrapFailed", MESSAGE)
    assert said(get(world), "BootstrapSucceeded") == ("False", "BootstrapFailed", MESSAGE)
    assert said(get(world), "Installed") == ("False", "BootstrapFailed", MESSAGE)
    assert get(world).status.instance_state == "Failed"
    assert not get(world).status.ready
    assert [(one.reason, one.type) for one in world.emitted].count(("BootstrapFailed", "Warning")) == 1


def test_output_is_waited_for_before_anybody_replaces_the_machine() -> None:
    world = booting()
    fail(world, output=[])
    status, reason, message = said(get(world))
    assert (status, reason) == ("False", "BootstrapFailed")
    assert message.endswith("Waiting for its output.")
    assert all(one.type != "BootstrapSucceeded" for one in get(world).status.conditions)
    fail(world)
    assert said(get(world), "BootstrapSucceeded") == ("False", "BootstrapFailed", MESSAGE)


def test_a_failure_without_output_names_where_that_is() -> None:
    world = booting()
    fail(world, output=[])
    world.settle(MACHINES, horizon_s=16)
    assert said(get(world), "BootstrapSucceeded")[0] == "False"
    assert said(get(world))[2] == (
        f"Server s0: {WHY}. The system did not send its output; see /var/log/cloud-init-output.log on the server."
    )


def test_a_long_output_is_cut_at_its_beginning() -> None:
    text = SystemFailure("", STAGE, WHY, [f"{number} {'x' * 200}" for number in range(20)]).text()
    assert len(text) <= 1000
    assert text.startswith(WHY)
    assert text.splitlines()[-1].startswith("19 ")


def test_time_and_later_reports_do_not_make_it_ready() -> None:
    world = booting()
    fail(world)
    world.settle(MACHINES, horizon_s=2000)
    up(world)
    assert not get(world).status.ready
    assert said(get(world))[1] == "BootstrapFailed"


def test_a_node_that_was_there_before_kubeadm_failed_does_not_hide_it() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    assert said(get(world))[0] == "True"
    world.clock.advance(5)
    fail(world)
    assert said(get(world)) == ("False", "BootstrapFailed", MESSAGE)
    assert said(get(world), "BootstrapSucceeded")[0] == "False"
    assert get(world).status.initialization.provisioned, "that is never taken back"


@pytest.mark.parametrize("ago_s", [60, 3600])
def test_what_the_system_before_reported_is_nothing_to_this_one(ago_s: float) -> None:
    world = booting()
    fail(world, ago_s=ago_s)
    assert said(get(world))[1] == "Booting"
    up(world)
    assert get(world).status.ready


def test_the_next_owner_of_the_server_is_not_told() -> None:
    world = booting()
    fail(world)
    delete(world)
    world.settle(MACHINES, horizon_s=60)
    assert INSTALLED_SYSTEM_FAILED not in hardware(world).metadata.annotations


def test_it_may_be_killed_anywhere() -> None:
    world = booting()
    at = rfc3339(world.now())
    body = {"metadata": {"annotations": {INSTALLED_SYSTEM_FAILED: encoded(SystemFailure(at, STAGE, WHY, OUTPUT))}}}
    world.change(HARDWARE, hardware(world), body)
    crash_check(MACHINES, world)


@pytest.mark.parametrize(("after_s", "counts"), [(3600, True), (3 * 3600, False)])
def test_what_fails_at_a_later_boot_of_a_node_is_no_matter_of_its_bootstrap(after_s: int, counts: bool) -> None:
    """Its first report was lost, so that whoever receives the later one cannot know."""
    world = scene(Engine())
    add_machine(world)
    world.settle(MACHINES)
    world.set_status(MACHINE, world.require(MACHINE, "default", "m"), {"nodeRef": {"name": "m"}})
    world.clock.advance(after_s)
    fail(world)
    assert (said(get(world))[1] == "BootstrapFailed") is counts


def test_what_fails_late_on_a_server_without_a_node_counts() -> None:
    world = booting()
    up(world)
    world.clock.advance(3 * 3600)
    fail(world)
    assert said(get(world))[1] == "BootstrapFailed"
