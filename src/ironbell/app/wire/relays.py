"""Addresses of DHCP relays whose machines are served: many machines behind one may request boot files as one address.

An address counts as a relay's once a known machine was answered through it. That can be faked; it only allows more
transfers at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ironbell.codec.dhcp.packet import ZERO
from ironbell.services.dhcp.answers import Reply

MAX_RELAYS: Final = 256


@dataclass
class Relays:
    """The relays seen since the start, up to a maximum."""

    _addresses: dict[str, None] = field(default_factory=dict)

    def __contains__(self, address: object) -> bool:
        return address in self._addresses

    def record(self, reply: Reply) -> None:
        """Record the relay of a response to a machine."""
        if reply.hardware and reply.packet.giaddr != ZERO and len(self._addresses) < MAX_RELAYS:
            self._addresses[str(reply.packet.giaddr)] = None
