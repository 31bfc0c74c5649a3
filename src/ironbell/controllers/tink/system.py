"""The Tinkerbell workflow controllers as a system."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Definitions, Lazy, System, Webhooks

_CONTROLLERS: Final = "ironbell.controllers.tink.controllers"

SYSTEMS: Final = (
    System(
        "tink-controller",
        "Workflows, Templates and Hardware: renders, prepares and finishes installations.",
        (Lazy("ironbell.api.tinkerbell", "KINDS"),),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        aliases=("tink", "workflow-controller"),
        definitions=Definitions.ALWAYS,
        webhooks=Webhooks("ironbell-validate", "ironbell-webhook-tls"),
        answers_engine_webhooks=True,
        is_installed_by_default=True,
    ),
)
