"""The controllers of Workflows, Templates and Hardware, and their permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ironbell.api.bmc import JOB, MACHINE
from ironbell.api.client import Api
from ironbell.api.tinkerbell import HARDWARE, TEMPLATE, WORKFLOW
from ironbell.contract.access import Permissions, may, may_read, policy_rules
from ironbell.contract.system import Runtime
from ironbell.controllers.tink import render, template
from ironbell.controllers.tink.hardware import HardwareReconciler
from ironbell.controllers.tink.inventory import HardwareInventoryReconciler
from ironbell.controllers.tink.render import Renderer
from ironbell.controllers.tink.rendering.pool import rendering_pool
from ironbell.controllers.tink.template import TemplateReconciler
from ironbell.controllers.tink.workflow import WorkflowReconciler
from ironbell.kube.manager.controller import Controller

PERMISSIONS: Final = Permissions(
    reads=policy_rules(may_read(HARDWARE, TEMPLATE, WORKFLOW, JOB, MACHINE)),
    writes={
        WorkflowReconciler.name: policy_rules(
            [
                may(WORKFLOW, "patch", status=True),
                may(HARDWARE, "patch"),
                may(WORKFLOW, "update", subresource="finalizers"),  # for owner references that block deletion
                may(JOB, "create", "delete"),
            ]
        ),
        TemplateReconciler.name: policy_rules([may(TEMPLATE, "patch", status=True)]),
        HardwareReconciler.name: policy_rules([may(HARDWARE, "patch", status=True)]),
        HardwareInventoryReconciler.name: policy_rules([may(HARDWARE, "patch", status=True)]),
    },
)


def create_controllers(runtime: Runtime) -> list[Controller]:
    """Create the system's controllers for a process."""
    rendering = runtime.shared(rendering_pool)
    return controllers(rendering, rendering.parse, runtime.api_of)


def controllers(renderer: Renderer, parse: template.Parse, api_of: Callable[[str], Api | None]) -> list[Controller]:
    """Create the controllers.

    Args:
        renderer: the template engine.
        parse: raises `IronbellError` for a text that is not a valid template.
        api_of: the API under the identity of a controller, by its name; None for the manager's.
    """
    return [
        Controller(WorkflowReconciler(), performers=render.performers(renderer), api=api_of(WorkflowReconciler.name)),
        Controller(
            TemplateReconciler(), resolvers=template.resolvers(parse), workers=4, api=api_of(TemplateReconciler.name)
        ),
        Controller(HardwareReconciler(), workers=4, api=api_of(HardwareReconciler.name)),
        Controller(HardwareInventoryReconciler(), workers=4, api=api_of(HardwareInventoryReconciler.name)),
    ]
