"""Toys as a system."""

from __future__ import annotations

from typing import Final

from ironbell.contract.system import Lazy, System

_CONTROLLERS: Final = "ironbell.controllers.toy.controllers"

SYSTEMS: Final = (
    System(
        "toy",
        "Toys: what tests play with.",
        (Lazy("ironbell.controllers.toy.kinds", "KINDS"),),
        Lazy(_CONTROLLERS, "PERMISSIONS"),
        Lazy(_CONTROLLERS, "create_controllers"),
        admission=Lazy("ironbell.controllers.toy.admission", "ADMISSION"),
        admitted=frozenset({"toys.toys.ironbell.dev"}),
    ),
)
