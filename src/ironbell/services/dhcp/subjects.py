"""From a MAC to what DHCP knows about its machine, compiled once per change of its Hardware.

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
from ironbell.services.dhcp.answers import Known, Subject, Unusable
from ironbell.services.dhcp.problems import Problem
from ironbell.services.dhcp.reservation import InvalidDhcpDataError, Reservation, reservation_of

PlanFunction = Callable[[Hardware, Interface, str], NetbootPlan]
"""(hardware, interface, our address as the machine reaches it) to the site's netboot policy for it; pure."""


CONFLICT_AGE_S = 5.0
"""How old an answer to "does another Hardware claim this address?" may be; it depends on all Hardware."""


class MachineDirectory(Protocol):
    """Where Hardware is found; `contract.servers.directory.HardwareDirectory` is one."""

    def by_mac(self, mac: str) -> Lookup: ...

    def by_ip(self, address: str) -> Lookup: ...


@dataclass(slots=True)
class _Entry:
    """What was compiled from one state of one Hardware."""

    hardware: Hardware
    compiled: Reservation | Unusable
    own_address: IPv4Address | None = None
    known: Known | None = None
    address_checked_at: float = float("-inf")
    address_conflict: Unusable | None = None


class Subjects:
    """Looks machines up. Frozen Hardware makes the cache safe: another state is another object."""

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
        """The machine with this MAC. `own_address_for` says which address of ours it reaches."""
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
        """Another Hardware with the same address: handing it out twice would break both machines."""
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
            return Unusable(Problem(error.reason, f"interface {mac} is not served: {error.message}", mac, name))
        for warning in reservation.warnings:
            self._on_problem(Problem("DhcpDataIgnored", f"interface {mac}: {warning}", mac, name))
        return reservation


def _name(hardware: Hardware) -> str:
    return "/".join(hardware.key)
