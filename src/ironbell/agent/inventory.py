"""The current inventory of this machine: its parts at once, its neighbours when they are detected.

Listening needs the right to open packet sockets; without it no neighbour is detected, and nothing else changes. Input
is bounded in time and number, since anybody on the cable may send it.

Source: Linux: packet(7), netdevice(7), Documentation/networking/ip-sysctl.rst.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ironbell.agent import attributes, machine
from ironbell.codec import lldp
from ironbell.codec.lldp import Neighbour
from ironbell.codec.proto import workflow_pb2

LISTEN_S: Final = 65.0
"""Twice the usual 30 s between announcements, and some for a link to come up."""
MAX_NEIGHBOURS: Final = 4
"""Limit per interface: more means a cable into a device that forwards what it should not."""
_MAX_FRAMES: Final = 1000
_MAX_FRAME: Final = 9216
_ARPHRD_ETHER: Final = 1
_IFF_UP: Final = 1
_SIOCGIFHWADDR, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8927, 0x8913, 0x8914
_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_MR_MULTICAST = 263, 1, 0
_PACKET_OUTGOING: Final = 4
_SYSCTL: Final = Path("/proc/sys/net")


class Inventory:
    """The attributes that go out with each request for an action."""

    def __init__(self, *, detects: bool = True, sys: Path = machine.SYS) -> None:
        self.current = attributes.detect(sys) if detects else workflow_pb2.AgentAttributes()
        self._sys = sys
        self._heard: dict[str, dict[tuple[str, str], Neighbour]] = {}

    async def listen(self, *, raises_links: bool = False, limit_s: float = LISTEN_S) -> None:
        """Record neighbours as they are detected: until each interface has one, or until the limit."""
        names = ethernet()
        if raises_links:
            raise_links(names, sys=self._sys)
        opened = listener(names)
        if opened is not None:
            with opened:
                await self._listen(opened, names, limit_s)
            await self._renew(heard_all=True)

    async def _listen(self, opened: socket.socket, names: list[str], limit_s: float) -> None:
        async with contextlib.aclosing(neighbours(opened, limit_s=limit_s)) as heard:
            async for interface, neighbour in heard:
                if interface in names and self._is_new(interface, neighbour):
                    await self._renew(heard_all=False)
                if all(name in self._heard for name in names):
                    return

    def _is_new(self, interface: str, neighbour: Neighbour) -> bool:
        neighbours = self._heard.get(interface, {})
        key = (neighbour.chassis_id, neighbour.port_id)
        if not neighbour.ttl_s or key in neighbours or len(neighbours) == MAX_NEIGHBOURS:
            return False
        self._heard[interface] = {**neighbours, key: neighbour}
        return True

    async def _renew(self, *, heard_all: bool) -> None:
        heard = {name: [neighbours[key] for key in sorted(neighbours)] for name, neighbours in self._heard.items()}
        self.current = await asyncio.to_thread(attributes.detect, self._sys, heard=heard, heard_all=heard_all)


def ethernet() -> list[str]:
    """Ethernet interfaces of this network namespace, by name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        return sorted(_ethernet(control))


def raise_links(names: Iterable[str], *, sys: Path = machine.SYS, sysctl: Path = _SYSCTL) -> None:
    """Bring up interfaces that are down and belong to a device, so that they receive, and so that their speed is known.

    They get no address, and do not answer for addresses of another interface: the network sees only a link.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name in names:
            if not (sys / "class" / "net" / name / "device").exists():
                continue
            with contextlib.suppress(OSError):
                request = struct.pack("16sh22x", name.encode(), 0)
                flags = struct.unpack_from("=h", fcntl.ioctl(control.fileno(), _SIOCGIFFLAGS, request), 16)[0]
                if flags & _IFF_UP:
                    continue
                (sysctl / "ipv4" / "conf" / name / "arp_ignore").write_text("8")
                with contextlib.suppress(FileNotFoundError):
                    (sysctl / "ipv6" / "conf" / name / "disable_ipv6").write_text("1")
                up = struct.pack("16sh22x", name.encode(), flags | _IFF_UP)
                fcntl.ioctl(control.fileno(), _SIOCSIFFLAGS, up)


def listener(names: Sequence[str]) -> socket.socket | None:
    """A packet socket that receives the LLDP frames of these interfaces; None where that is not permitted."""
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(lldp.ETHERTYPE))
    except OSError:
        return None
    opened.setblocking(False)
    for name in names:
        with contextlib.suppress(OSError):
            membership = struct.pack("=iHH8s", socket.if_nametoindex(name), _PACKET_MR_MULTICAST, 6, lldp.MULTICAST)
            opened.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, membership)
    return opened


async def neighbours(opened: socket.socket, *, limit_s: float) -> AsyncGenerator[tuple[str, lldp.Neighbour], None]:
    """Yield interface and neighbour, as they are detected, until the time limit. Does not close the socket."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError, OSError):
        deadline = loop.time() + limit_s
        for _ in range(_MAX_FRAMES):
            async with asyncio.timeout_at(deadline):
                frame, address = await loop.sock_recvfrom(opened, _MAX_FRAME)
            payload = None if address[2] == _PACKET_OUTGOING else lldp.payload_of(frame)
            with contextlib.suppress(lldp.LldpError):
                if payload is not None:
                    yield address[0], lldp.decode(payload)


def _ethernet(control: socket.socket) -> Iterator[str]:
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            answer = fcntl.ioctl(control.fileno(), _SIOCGIFHWADDR, struct.pack("16s240x", name.encode()))
            if struct.unpack_from("=H", answer, 16)[0] == _ARPHRD_ETHER:
                yield name
