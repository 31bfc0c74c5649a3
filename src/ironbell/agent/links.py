"""The machine's network interfaces, and who is at their other end: a listener for LLDP that sends nothing.

Hearing takes the right to open packet sockets; without it nothing is heard, and that is all. What comes in is bounded
in time and number, since anybody on the cable may send it.

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

from ironbell.agent import machine
from ironbell.codec import lldp

LISTEN_S: Final = 65.0
"""Twice the usual 30 s between announcements, and some for a link to come up."""
MAX_NEIGHBOURS: Final = 4
"""Of one interface: more means a cable into something that forwards what it should not."""
_MAX_FRAMES: Final = 1000
_MAX_FRAME: Final = 9216
_ARPHRD_ETHER: Final = 1
_IFF_UP: Final = 1
_SIOCGIFHWADDR, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8927, 0x8913, 0x8914
_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_MR_MULTICAST = 263, 1, 0
_PACKET_OUTGOING: Final = 4
_SYSCTL: Final = Path("/proc/sys/net")


def ethernet() -> list[str]:
    """Ethernet interfaces of this network namespace, by name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        return sorted(_ethernet(asking))


def raise_links(names: Iterable[str], *, sys: Path = machine.SYS, sysctl: Path = _SYSCTL) -> None:
    """Bring those up that are down and belong to a device, so that they hear, and so that their speed is known.

    They get no address, and answer for none of another interface: the network sees a link and nothing more.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for name in names:
            if not (sys / "class" / "net" / name / "device").exists():
                continue
            with contextlib.suppress(OSError):
                request = struct.pack("16sh22x", name.encode(), 0)
                flags = struct.unpack_from("=h", fcntl.ioctl(asking.fileno(), _SIOCGIFFLAGS, request), 16)[0]
                if flags & _IFF_UP:
                    continue
                (sysctl / "ipv4" / "conf" / name / "arp_ignore").write_text("8")
                with contextlib.suppress(FileNotFoundError):
                    (sysctl / "ipv6" / "conf" / name / "disable_ipv6").write_text("1")
                up = struct.pack("16sh22x", name.encode(), flags | _IFF_UP)
                fcntl.ioctl(asking.fileno(), _SIOCSIFFLAGS, up)


def listener(names: Sequence[str]) -> socket.socket | None:
    """A packet socket that gets the LLDP frames of these interfaces; None where that is not permitted."""
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(lldp.ETHERTYPE))
    except OSError:
        return None
    opened.setblocking(False)
    for name in names:
        with contextlib.suppress(OSError):
            wanted = struct.pack("=iHH8s", socket.if_nametoindex(name), _PACKET_MR_MULTICAST, 6, lldp.MULTICAST)
            opened.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, wanted)
    return opened


async def neighbours(opened: socket.socket, *, limit_s: float) -> AsyncGenerator[tuple[str, lldp.Neighbour], None]:
    """Interface and neighbour, as they are heard, until the time is over. Does not close the socket."""
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


def _ethernet(asking: socket.socket) -> Iterator[str]:
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            answer = fcntl.ioctl(asking.fileno(), _SIOCGIFHWADDR, struct.pack("16s240x", name.encode()))
            if struct.unpack_from("=H", answer, 16)[0] == _ARPHRD_ETHER:
                yield name
