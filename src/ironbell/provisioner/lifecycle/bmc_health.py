"""The health of a server beside that of its Node: whether its BMC responds, and whether it is powered on. Pure.

Conditions report both, without other consequences for an owner with a server: remediation decides by Nodes, and a BMC
that does not respond does not justify the loss of a Node.
"""

from __future__ import annotations

from typing import Final

from ironbell.api.bmc import MACHINE
from ironbell.api.bmc.machine import Machine, MachineConditionType, PowerState
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.clusters.machine_causes import POWERED_ON
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.health import bmc_key, is_silent, silence
from ironbell.provisioner.lifecycle.host import Draft

BMC_CONTACTABLE: Final = "BMCContactable"
_UNKNOWN: Final[tuple[bool | None, str]] = (None, "PowerUnknown")
_POWERED: Final[dict[str, tuple[bool | None, str]]] = {
    PowerState.ON: (True, "PoweredOn"),
    PowerState.OFF: (False, "PoweredOff"),
}


BY_BMC: Index[Hardware] = Index(
    HARDWARE, "bmc", lambda hardware: ["/".join(key)] if (key := bmc_key(hardware)) is not None else []
)


def bmc_of(cache: Cache, hardware: Hardware | None) -> Machine | None:
    """The bmc Machine of a server, if it exists."""
    key = bmc_key(hardware) if hardware is not None else None
    return cache.get(MACHINE, *key) if key is not None else None


def answers_again(old: Machine | None, new: Machine | None) -> bool:
    """Return whether a BMC prevented claims of its server, and no longer does."""
    return old is not None and is_silent(old) and (new is None or not is_silent(new))


def contact_changed(old: Machine | None, new: Machine | None) -> bool:
    """Return whether a BMC stopped or resumed responding."""
    return (old is not None and is_silent(old)) != (new is not None and is_silent(new))


def health_changed(old: Machine | None, new: Machine | None) -> bool:
    """Return whether there is something to report; most writes of a bmc Machine only record a query."""
    return _seen(old) != _seen(new)


def report_health(draft: Draft, hardware: Hardware) -> None:
    """Set the conditions. A server without a BMC has none, unless they were set before."""
    bmc, key = draft.state.bmc, bmc_key(hardware)
    if key is None:
        for type_ in (BMC_CONTACTABLE, POWERED_ON):
            if draft.known(type_) is not None:
                draft.set_condition(type_, None, "NoBMC", f"Hardware {hardware.metadata.name} names no BMC")
        return
    answers, power, _ = _seen(bmc)
    if answers == "True":
        draft.set_condition(BMC_CONTACTABLE, True, "BMCContactable")
    elif answers == "False":
        message = f"bmc Machine {'/'.join(key)}: {silence(bmc) if bmc is not None else ''}"
        draft.set_condition(BMC_CONTACTABLE, False, "BMCNotContactable", message)
    else:
        message = "" if bmc is not None else "its bmc Machine does not exist"
        draft.set_condition(BMC_CONTACTABLE, None, "NotAskedYet", message)
    is_on, reason = _POWERED.get(power, _UNKNOWN)
    draft.set_condition(POWERED_ON, is_on, reason, _power_message(hardware, is_on, is_current=answers == "True"))


def _power_message(hardware: Hardware, is_on: bool | None, *, is_current: bool) -> str:
    parts = [f"server {hardware.metadata.name} is powered off"] if is_on is False else []
    return ", ".join([*parts, *([] if is_on or is_current else ["as of the BMC's last response"])])


def _seen(bmc: Machine | None) -> tuple[str, str, str]:
    """The condition Contactable, the power state, and why the BMC does not respond."""
    if bmc is None:
        return "", "", ""
    kind = MachineConditionType.CONTACTABLE
    answers = next((condition.status for condition in bmc.status.conditions if condition.type == kind), "")
    return answers, bmc.status.power_state, silence(bmc)
