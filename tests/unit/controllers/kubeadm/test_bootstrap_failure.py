"""A host whose bootstrap failed: said by its infrastructure, told by the KubeadmConfig with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.unstructured import dynamic_kind
from ironbell.contract.clusters.bootstrap import reported_failure
from ironbell.kube.testing.world import World
from support.kubeadm.world import (
    RECONCILER,
    SITE,
    add_cluster,
    add_infrastructure,
    add_machine,
    add_pairs,
    join,
    legacy,
    new_world,
    said,
)

DEV_MACHINE = dynamic_kind("infrastructure.cluster.x-k8s.io", "v1beta2", "DevMachine", "devmachines")
PROBLEM = "kubeadm join: couldn't validate the identity of the API Server"


@pytest.fixture
def world() -> World:
    world = new_world()
    add_cluster(world, initialized=True)
    add_pairs(world)
    add_machine(world, "w1")
    add_infrastructure(world, DEV_MACHINE, "w1")
    world.settle(RECONCILER)
    return world


def report(world: World, value: str | None) -> None:
    machine = world.require(DEV_MACHINE, SITE, "w1")
    world.change(DEV_MACHINE, machine, {"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": value}}})
    world.settle(RECONCILER)


def test_nothing_is_said_while_nothing_is_known(world: World) -> None:
    assert "BootstrapSucceeded" not in said(world, "w1")


def test_the_reason_is_told_and_counts_for_ready(world: World) -> None:
    report(world, PROBLEM)
    assert said(world, "w1")["BootstrapSucceeded"] == ("False", "BootstrapFailed", PROBLEM)
    assert said(world, "w1")["Ready"] == ("False", "NotReady", f"* BootstrapSucceeded: {PROBLEM}")
    assert said(world, "w1")["DataSecretAvailable"][0] == "True"
    assert legacy(world, "w1")["Ready"] == ("False", "Error", "BootstrapFailed")


def test_a_host_that_tries_again_is_not_failed_any_more(world: World) -> None:
    report(world, PROBLEM)
    report(world, None)
    assert "BootstrapSucceeded" not in said(world, "w1")
    assert said(world, "w1")["Ready"][0] == "True"


def test_a_node_has_succeeded_whatever_was_said_before(world: World) -> None:
    report(world, PROBLEM)
    join(world, "w1")
    world.settle(RECONCILER)
    assert said(world, "w1")["BootstrapSucceeded"][0] == "True"
    assert said(world, "w1")["Ready"][0] == "True"


CONDITION = {"type": "BootstrapExecSucceeded", "status": "False", "reason": "BootstrapFailed", "message": PROBLEM}


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ({}, ""),
        ({"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": PROBLEM}}}, PROBLEM),
        ({"metadata": {"annotations": {"ironbell.dev/bootstrap-failure": "x" * 2000}}}, "x" * 1023 + "…"),
        ({"status": {"conditions": [CONDITION]}}, PROBLEM),
        ({"status": {"conditions": [{**CONDITION, "message": ""}]}}, "BootstrapFailed"),
        ({"status": {"conditions": [{**CONDITION, "status": "True"}]}}, ""),
        ({"status": {"conditions": [{**CONDITION, "severity": "Info"}]}}, ""),
        ({"status": {"deprecated": {"v1beta1": {"conditions": [{**CONDITION, "severity": "Warning"}]}}}}, PROBLEM),
        ({"status": {"conditions": [{**CONDITION, "type": "BootstrapSucceeded"}]}}, PROBLEM),
        ({"status": {"conditions": [{**CONDITION, "type": "Ready"}]}}, ""),
    ],
)
def test_how_providers_say_it(body: dict[str, Any], failure: str) -> None:
    assert reported_failure(DEV_MACHINE.convert({"metadata": {"name": "m"}, **body})) == failure  # type: ignore[attr-defined]
