"""What a template tells an autoscaler."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.capt import TINKERBELL_MACHINE_TEMPLATE
from ironbell.api.meta import to_builtin
from ironbell.controllers.capt.machine_template import TinkerbellMachineTemplateReconciler
from ironbell.kube.testing import World, crash_check

TEMPLATES = TinkerbellMachineTemplateReconciler()


def told(requirements: dict[str, Any] | None, status: dict[str, Any] | None = None) -> dict[str, Any]:
    world = World()
    spec = {"hardwareRequirements": requirements} if requirements is not None else {}
    body = {"metadata": {"namespace": "default", "name": "t"}, "spec": {"template": {"spec": spec}}}
    world.add(TINKERBELL_MACHINE_TEMPLATE, {**body, "status": status or {}})
    end = crash_check(TEMPLATES, world)
    return dict(to_builtin(end.list(TINKERBELL_MACHINE_TEMPLATE)[0].status))


@pytest.mark.parametrize(
    ("requirements", "status"),
    [
        (None, {}),
        ({"vendor": "Dell*", "disks": {"count": 2}}, {}),
        (
            {"cpuCores": 16, "memory": "65536Mi", "architecture": "arm64"},
            {
                "capacity": {"cpu": "16", "memory": "64Gi"},
                "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"},
            },
        ),
        ({"memory": 1 << 30, "architecture": "a*"}, {"capacity": {"memory": "1073741824"}}),
    ],
)
def test_a_template_tells_what_its_machines_have_at_least(requirements: Any, status: dict[str, Any]) -> None:
    assert told(requirements) == status


def test_what_no_longer_holds_goes() -> None:
    assert told({"cpuCores": 4}, {"capacity": {"cpu": "1", "memory": "1Gi"}}) == {"capacity": {"cpu": "4"}}
