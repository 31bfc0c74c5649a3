"""How the server itself is, beside what its node says: whether its BMC answers, and whether it is switched on. Pure.

Conditions report both, and nothing else follows for a machine that has its server: remediation decides by nodes, and a
BMC that does not answer is no reason to take a node away.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ironbell.api.bmc import MACHINE
from ironbell.api.bmc.machine import Machine, MachineConditionType, PowerState
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.contract.hardware_claim import claim_of
from ironbell.contract.machine_causes import POWERED_ON
from ironbell.controllers.capt.progress import Progress
from ironbell.kube.conditions import find_condition
from ironbell.kube.decision import Key
from ironbell.kube.reconciler import Cache, Index
from ironbell.provisioner.health import bmc_key, is_silent, silence

BMC_CONTACTABLE: Final = "BMCContactable"
_UNKNOWN: Final[tuple[bool | None, str]] = (None, "PowerUnknown")
_POWERED: Final[dict[str, tuple[bool | None, str]]] = {
    PowerState.ON: (True, "PoweredOn"),
    PowerState.OFF: (False, "PoweredOff"),
}


def _bmc(hardware: Hardware) -> list[str]:
    key = bmc_key(hardware)
    return ["/".join(key)] if key is not None else []


BY_BMC: Index[Hardware] = Index(HARDWARE, "capt-bmc", _bmc)


def bmc_of(cache: Cache, hardware: Hardware | None) -> Machine | None:
    """The BMC of a server, if it is there."""
    key = bmc_key(hardware) if hardware is not None else None
    return cache.get(MACHINE, *key) if key is not None else None


def machines_of(bmc: Machine, cache: Cache) -> Iterable[Key]:
    """Who has the server behind a BMC."""
    for hardware in cache.indexed(BY_BMC, "/".join(bmc.key)):
        claim = claim_of(hardware)
        if claim is not None:
            yield claim.namespace, claim.name


def answers_again(old: Machine | None, new: Machine | None) -> bool:
    """Whether a BMC kept its server from being claimed, and no longer does."""
    return old is not None and is_silent(old) and (new is None or not is_silent(new))


def changed_its_answer(old: Machine | None, new: Machine | None) -> bool:
    """Whether a BMC fell silent, or answers again."""
    return (old is not None and is_silent(old)) != (new is not None and is_silent(new))


def turned(old: Machine | None, new: Machine | None) -> bool:
    """Whether there is something to tell: not what a BMC says of itself each time it is asked."""
    return _seen(old) != _seen(new)


def tell_health(progress: Progress, hardware: Hardware, bmc: Machine | None) -> None:
    """Set the conditions. A server without a BMC has none; one that had, says so."""
    if not _bmc(hardware):
        for type_ in (BMC_CONTACTABLE, POWERED_ON):
            if find_condition(progress.obj.status.conditions, type_) is not None:
                progress.note(type_, None, "NoBMC", f"Hardware {hardware.metadata.name} names no BMC")
        return
    answers, power, _ = _seen(bmc)
    if answers == "True":
        progress.note(BMC_CONTACTABLE, True, "BMCContactable")
    elif answers == "False":
        progress.note(
            BMC_CONTACTABLE,
            False,
            "BMCNotContactable",
            f"bmc Machine {_bmc(hardware)[0]}: {silence(bmc) if bmc is not None else ''}",
        )
    else:
        progress.note(BMC_CONTACTABLE, None, "NotAskedYet", "" if bmc is not None else "its bmc Machine does not exist")
    is_on, reason = _POWERED.get(power, _UNKNOWN)
    progress.note(POWERED_ON, is_on, reason, _power_message(hardware, is_on, is_current=answers == "True"))


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
