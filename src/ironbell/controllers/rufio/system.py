"""The BMC controllers as a system."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Definitions, Lazy, System

_CONTROLLERS: Final = "ironbell.controllers.rufio.controllers"

SYSTEMS: Final = (
    System(
        "rufio",
        "BMC Machines, Jobs and Tasks: power, boot device, virtual media.",
        (Lazy("ironbell.api.bmc", "KINDS"),),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        aliases=("bmc", "pbnj"),
        definitions=Definitions.ALWAYS,
        is_installed_by_default=True,
    ),
)
