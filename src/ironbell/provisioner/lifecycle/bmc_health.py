"""How the server itself is, beside what its node says: whether its BMC answers, and whether it is switched on. Pure.

Conditions report both, and nothing else follows for a machine that has its server: remediation decides by nodes, and a
BMC that does not answer is no reason to take a node away.
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


def _bmc(hardware: Hardware) -> list[str]:
    key = bmc_key(hardware)
    return ["/".join(key)] if key is not None else []


BY_BMC: Index[Hardware] = Index(HARDWARE, "bmc", _bmc)


def bmc_of(cache: Cache, hardware: Hardware | None) -> Machine | None:
    """The BMC of a server, if it is there."""
    key = bmc_key(hardware) if hardware is not None else None
    return cache.get(MACHINE, *key) if key is not None else None


def answers_again(old: Machine | None, new: Machine | None) -> bool:
    """Whether a BMC kept its server from being claimed, and no longer does."""
    return old is not None and is_silent(old) and (new is None or not is_silent(new))


def contact_changed(old: Machine | None, new: Machine | None) -> bool:
    """Whether a BMC fell silent, or answers again."""
    return (old is not None and is_silent(old)) != (new is not None and is_silent(new))


def health_changed(old: Machine | None, new: Machine | None) -> bool:
    """Return whether there is something to report: not what a BMC says of itself each time it is queried."""
    return _seen(old) != _seen(new)


def report_health(draft: Draft, hardware: Hardware) -> None:
    """Set the conditions. A server without a BMC has none; one that had, says so."""
    bmc = draft.state.bmc
    if not _bmc(hardware):
        for type_ in (BMC_CONTACTABLE, POWERED_ON):
            if draft.known(type_) is not None:
                draft.note(type_, None, "NoBMC", f"Hardware {hardware.metadata.name} names no BMC")
        return
    answers, power, _ = _seen(bmc)
    if answers == "True":
        draft.note(BMC_CONTACTABLE, True, "BMCContactable")
    elif answers == "False":
        draft.note(
            BMC_CONTACTABLE,
            False,
            "BMCNotContactable",
            f"bmc Machine {_bmc(hardware)[0]}: {silence(bmc) if bmc is not None else ''}",
        )
    else:
        draft.note(BMC_CONTACTABLE, None, "NotAskedYet", "" if bmc is not None else "its bmc Machine does not exist")
    is_on, reason = _POWERED.get(power, _UNKNOWN)
    draft.note(POWERED_ON, is_on, reason, _power_message(hardware, is_on, is_current=answers == "True"))


def _power_message(hardware: Hardware, is_on: bool | None, *, is_current: bool) -> str:
    parts = [f"server {hardware.metadata.name} is switched off"] if is_on is False else []
    return ", ".join([*parts, *([] if is_on or is_current else ["as of when the BMC last answered"])])


def _seen(bmc: Machine | None) -> tuple[str, str, str]:
    """Whether it answers, the power state, and why it does not answer."""
    if bmc is None:
        return "", "", ""
    kind = MachineConditionType.CONTACTABLE
    answers = next((one.status for one in bmc.status.conditions if one.type == kind), "")
    return answers, bmc.status.power_state, silence(bmc)
