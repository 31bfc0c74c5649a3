"""How the machines of what this provider makes are known: by token wherever our agent boots and can have one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ironbell.api.meta import to_builtin
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE
from ironbell.contract.servers.boot_token import PLACEHOLDER
from ironbell.contract.servers.identity import IDENTITY
from ironbell.kube.testing import World
from support.servers.captscene import MACHINES, Engine, add_machine, delete, hardware, scene

SITE = replace(MACHINES, site=f"http://192.0.2.1:7080/t/{PLACEHOLDER}")


def made(world: World, name: str) -> tuple[str, bool]:
    """What a Template is marked with, and whether it names the token."""
    found = world.require(TEMPLATE, "default", name)
    return found.metadata.annotations.get(IDENTITY, ""), PLACEHOLDER in found.spec.data


def test_the_default_installation_and_the_wipe_are_ours() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(SITE)
    assert made(world, "m") == ("strict", True)
    wiped = scene(Engine(wipe=""))
    add_machine(wiped)
    wiped.settle(SITE)
    delete(wiped)
    wiped.settle(SITE)
    assert made(wiped, "m-wipe") == ("strict", False)


@pytest.mark.parametrize("netboot", [{"ipxe": {"url": "http://mine/boot.ipxe"}}, {"ipxe": {"contents": "#!ipxe"}}])
def test_a_boot_with_a_script_of_its_own_is_known_by_address(netboot: dict[str, Any]) -> None:
    world = scene(Engine())
    interfaces = [{**to_builtin(one), "netboot": netboot} for one in hardware(world).spec.interfaces]
    world.change(HARDWARE, hardware(world), {"spec": {"interfaces": interfaces}})
    add_machine(world)
    world.settle(SITE)
    assert made(world, "m") == ("", False)


def test_a_site_that_is_as_upstream_makes_templates_as_upstream() -> None:
    world = scene(Engine())
    add_machine(world)
    world.settle(replace(MACHINES, site="http://192.0.2.1:7080"))
    assert made(world, "m") == ("", False)


def test_a_template_of_the_users_is_what_the_user_says() -> None:
    world = scene(Engine())
    add_machine(world, templateOverride="tasks: []")
    world.settle(SITE)
    assert made(world, "m") == ("", False)
