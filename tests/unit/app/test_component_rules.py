"""What a component may read on a cluster is what its controllers watch: without one of them it would not start."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ironbell.app.components import Component, components_named
from ironbell.base.clock import SteadyClock, SystemClock
from ironbell.controllers.capt import controllers as capt
from ironbell.controllers.ipam import controllers as ipam
from ironbell.controllers.rufio import controllers as rufio
from ironbell.controllers.rufio.bmc_access import BmcAccess
from ironbell.controllers.tink import controllers as tink
from ironbell.kube.manager.controller import Controller
from ironbell.kube.testing.memory import MemoryApi
from support.kubeadm.workloads import no_workloads
from support.servers.rendering import InProcess


async def nobody(*_arguments: object) -> object:
    raise AssertionError("no BMC is asked here")


def made(component: Component) -> Sequence[Controller]:
    api, engine = MemoryApi(clock=SystemClock()), InProcess()
    return {
        "tink-controller": lambda: tink.controllers(engine, engine.parse, lambda _name: api),
        "rufio": lambda: rufio.controllers(BmcAccess(api, nobody), SteadyClock(), lambda _name: api),
        "capt": lambda: capt.controllers(api, "", lambda _name: api, workloads=no_workloads()),
        "ipam": lambda: ipam.controllers(api, lambda _name: api),
    }[component.name]()


@pytest.mark.parametrize(
    "component", components_named(["tink-controller", "rufio", "capt", "ipam"]), ids=lambda one: one.name
)
def test_everything_that_is_watched_may_be_read(component: Component) -> None:
    allowed = {
        (group, resource)
        for rule in component.rules
        if {"get", "list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = {
        (kind.group, kind.plural) for controller in made(component) for kind in controller.reconciler.declaration.kinds
    }
    assert watched - allowed == set()
