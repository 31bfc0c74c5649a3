"""Machines by MAC, as DHCP serves them, compiled once per change of their Hardware.

Source: tinkerbell/tinkerbell: smee/internal/dhcp/conv.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Protocol

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.api.tinkerbell.interface import Interface
from ironbell.base.clock import Clock
from ironbell.contract.servers.directory import Ambiguous, Lookup
from ironbell.contract.servers.netboot import NetbootPlan
from ironbell.services.dhcp.answers import Known, Problem, Subject, Unusable
from ironbell.services.dhcp.reservation import InvalidDhcpDataError, Reservation, reservation_of

PlanFunction = Callable[[Hardware, Interface, str], NetbootPlan]
"""Returns the netboot plan for hardware, interface, and our address as the machine reaches it. Pure."""

CONFLICT_AGE_S = 5.0
"""Maximum age of the result of the check whether another Hardware has the same address; all Hardware matter to it."""


class MachineDirectory(Protocol):
    """Finds Hardware, such as `contract.servers.directory.HardwareDirectory`."""

    def by_mac(self, mac: str) -> Lookup: ...

    def by_ip(self, address: str) -> Lookup: ...


@dataclass(slots=True)
class _Entry:
    """The result of compiling one state of a Hardware."""

    hardware: Hardware
    compiled: Reservation | Unusable
    own_address: IPv4Address | None = None
    known: Known | None = None
    address_checked_at: float = float("-inf")
    address_conflict: Unusable | None = None


class Subjects:
    """Finds machines. Hardware is frozen, so a cached entry is valid as long as the object is the same."""

    def __init__(
        self,
        directory: MachineDirectory,
        plan: PlanFunction,
        *,
        clock: Clock,
        default_lease_s: int,
        on_problem: Callable[[Problem], None],
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._clock = clock
        self._default_lease_s = default_lease_s
        self._on_problem = on_problem
        self._entries: dict[str, _Entry] = {}

    def find(self, mac: str, own_address_for: Callable[[Reservation | None], IPv4Address]) -> Subject:
        """Return the machine with this MAC. `own_address_for` returns our address that it reaches."""
        match = self._directory.by_mac(mac)
        if match is None:
            self._entries.pop(mac, None)
            return None
        if isinstance(match, Ambiguous):
            self._entries.pop(mac, None)
            return Unusable(Problem("AmbiguousHardware", match.message, mac, match.names))
        interface = match.interface or Interface()
        entry = self._entries.get(mac)
        if entry is None or entry.hardware is not match.hardware:
            entry = _Entry(match.hardware, self._compile(mac, match.hardware, interface))
            self._entries[mac] = entry
        if isinstance(entry.compiled, Unusable):
            return entry.compiled
        conflict = self._address_conflict(mac, entry, entry.compiled)
        if conflict is not None:
            return conflict
        own = own_address_for(entry.compiled)
        if entry.known is None or entry.own_address != own:
            plan = self._plan(match.hardware, interface, str(own))
            entry.known = Known(_name(match.hardware), entry.compiled, plan)
            entry.own_address = own
        return entry.known

    def _address_conflict(self, mac: str, entry: _Entry, reservation: Reservation) -> Unusable | None:
        """Return the conflict with another Hardware of the same address, which would break both machines."""
        now = self._clock.monotonic()
        if reservation.address is not None and now - entry.address_checked_at > CONFLICT_AGE_S:
            entry.address_checked_at = now
            match = self._directory.by_ip(str(reservation.address))
            entry.address_conflict = (
                Unusable(Problem("AmbiguousHardware", match.message, mac, match.names))
                if isinstance(match, Ambiguous)
                else None
            )
        return entry.address_conflict

    def _compile(self, mac: str, hardware: Hardware, interface: Interface) -> Reservation | Unusable:
        name = (_name(hardware),)
        try:
            reservation = reservation_of(interface, default_lease_s=self._default_lease_s)
        except InvalidDhcpDataError as error:
            return Unusable(Problem(error.reason, f"Interface {mac} is not served: {error.message}.", mac, name))
        for warning in reservation.warnings:
            self._on_problem(Problem("DhcpDataIgnored", f"Interface {mac}: {warning}.", mac, name))
        return reservation


def _name(hardware: Hardware) -> str:
    return "/".join(hardware.key)
