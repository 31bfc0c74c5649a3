"""Whether a server has what a machine asks for by its inventory, and what it lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fnmatch import fnmatchcase

from ironbell.api.tinkerbell.inventory import HardwareRequirements
from ironbell.base.quantities import amount, canonical
from ironbell.contract.clusters.capabilities import Capabilities
from ironbell.provisioner.health import Problem

_UNKNOWN = "is not known: its inventory has not come yet"


def lacks(wanted: HardwareRequirements | None, has: Capabilities) -> list[Problem]:
    """What the server lacks; empty if it fits."""
    return [] if wanted is None else list(_missing(wanted, has))


def _missing(wanted: HardwareRequirements, has: Capabilities) -> Iterator[Problem]:
    yield from _text("architecture", wanted.architecture, has.architecture)
    yield from _text("vendor", wanted.vendor, has.vendor)
    yield from _text("model", wanted.model, has.model)
    yield from _number("cpuCores", Decimal(wanted.cpu_cores), has.cpu_cores, str(wanted.cpu_cores))
    yield from _number("memory", amount(wanted.memory), has.memory, canonical(wanted.memory))
    yield from _number("nicSpeed", amount(wanted.nic_speed), has.nic_speed, canonical(wanted.nic_speed))
    if wanted.disks is not None:
        yield from _disks(wanted.disks.count, wanted.disks.size, has)


def _text(field: str, pattern: str, value: str | None) -> Iterator[Problem]:
    if not pattern:
        return
    if value is None:
        yield Problem(f"{field} {_UNKNOWN}")
    elif not fnmatchcase(value.lower(), _literal(pattern.lower())):
        yield Problem(f"{field} is {value!r}, not {pattern!r}")


def _literal(pattern: str) -> str:
    """Only `*` means something."""
    return "".join(f"[{char}]" if char in "?[" else char for char in pattern)


def _number(field: str, wanted: Decimal, value: int | None, shown: str) -> Iterator[Problem]:
    if wanted <= 0:
        return
    if value is None:
        yield Problem(f"{field} {_UNKNOWN}")
    elif value < wanted:
        yield Problem(f"{field} is {value}, less than {shown}", f"{field} is less than {shown}")


def _disks(count: int, size: str | int, has: Capabilities) -> Iterator[Problem]:
    if has.disks is None:
        yield Problem(f"disks: their number {_UNKNOWN}")
        return
    enough = sum(1 for disk in has.disks if disk.size >= amount(size))
    if enough < count:
        shown = f" of at least {canonical(size)}" if amount(size) > 0 else ""
        yield Problem(f"disks: {enough}{shown} are there, {count} are needed")
