"""The controllers of this group, ready to be added to a manager, and what each must be allowed to write.

Reading is the manager's identity's business: workflows, templates, hardware, bmc jobs and machines, everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ironbell.api.client import Api
from ironbell.controllers.tink import render, template
from ironbell.controllers.tink.hardware import HardwareReconciler
from ironbell.controllers.tink.inventory import HardwareInventoryReconciler
from ironbell.controllers.tink.render import Renderer
from ironbell.controllers.tink.template import TemplateReconciler
from ironbell.controllers.tink.workflow import WorkflowReconciler
from ironbell.kube.controller import Controller

_TINKERBELL, _BMC = ["tinkerbell.org"], ["bmc.tinkerbell.org"]

WRITES: Final[Mapping[str, Sequence[Mapping[str, Sequence[str]]]]] = {
    WorkflowReconciler.name: [
        {"apiGroups": _TINKERBELL, "resources": ["workflows", "workflows/status", "hardware"], "verbs": ["patch"]},
        {"apiGroups": _TINKERBELL, "resources": ["workflows/finalizers"], "verbs": ["update"]},
        {"apiGroups": _BMC, "resources": ["jobs"], "verbs": ["create", "delete"]},
    ],
    TemplateReconciler.name: [
        {"apiGroups": _TINKERBELL, "resources": ["templates", "templates/status"], "verbs": ["patch"]},
    ],
    HardwareReconciler.name: [
        {"apiGroups": _TINKERBELL, "resources": ["hardware", "hardware/status"], "verbs": ["patch"]},
    ],
    HardwareInventoryReconciler.name: [
        {"apiGroups": _TINKERBELL, "resources": ["hardware", "hardware/status"], "verbs": ["patch"]},
    ],
}
"""PolicyRules by the controller's name. `workflows/finalizers` is for owner references that block deletion."""

_READ: Final = ["get", "list", "watch"]
READS: Final[Sequence[Mapping[str, Sequence[str]]]] = [
    {"apiGroups": _TINKERBELL, "resources": ["hardware", "templates", "workflows"], "verbs": _READ},
    {"apiGroups": _BMC, "resources": ["jobs", "machines"], "verbs": _READ},
]
"""PolicyRules for what all of them watch."""


def controllers(renderer: Renderer, parse: template.Parse, api_of: Callable[[str], Api | None]) -> list[Controller]:
    """The controllers.

    Args:
        renderer: the template engine.
        parse: raises `IronbellError` for a text that is no template.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
    """
    return [
        Controller(WorkflowReconciler(), performers=render.performers(renderer), api=api_of(WorkflowReconciler.name)),
        Controller(TemplateReconciler(), askers=template.askers(parse), workers=4, api=api_of(TemplateReconciler.name)),
        Controller(HardwareReconciler(), workers=4, api=api_of(HardwareReconciler.name)),
        Controller(HardwareInventoryReconciler(), workers=4, api=api_of(HardwareInventoryReconciler.name)),
    ]
