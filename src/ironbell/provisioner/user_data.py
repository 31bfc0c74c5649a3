"""When the user data of a server is served, given and withdrawn. Pure.

The rule is about the data, not about marks: user data that is on a Hardware is served, whoever wrote it, so
withdrawing it removes it in the same write. The annotation `ironbell.dev/user-data-of` only explains why there is none,
and which version of a Secret was given.
"""

from __future__ import annotations

from typing import Any

from ironbell.api.tinkerbell import HARDWARE
from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.contract.hardware_claim import USER_DATA_OF, WITHDRAWN
from ironbell.contract.restored import why_held
from ironbell.kube.decision import MergePatch, patch


def why_withheld(hardware: Hardware) -> str:
    """Why no user data is served; empty if what is there is."""
    if not hardware.spec.user_data and hardware.metadata.annotations.get(USER_DATA_OF) == WITHDRAWN:
        return "The user data was withdrawn: the machine has joined its cluster, or is being released."
    return why_held(hardware) or ""


def needs_user_data(hardware: Hardware, version: str) -> bool:
    """Whether a server lacks this version of its bootstrap data; what was withdrawn is not given again."""
    given = hardware.metadata.annotations.get(USER_DATA_OF)
    return given != WITHDRAWN and (given != version or not hardware.spec.user_data)


def withdrawal(hardware: Hardware) -> MergePatch | None:
    """The one write that removes the user data and records it; None if both are done.

    Upstream's controller writes the data on every reconcile, so it may come back under a mark of ours.
    """
    if hardware.spec.user_data is None and hardware.metadata.annotations.get(USER_DATA_OF) == WITHDRAWN:
        return None
    body: dict[str, Any] = {"metadata": {"annotations": {USER_DATA_OF: WITHDRAWN}}, "spec": {"userData": None}}
    return patch(HARDWARE, hardware, body, locked=True)
