"""What is known of this machine by now: its parts at once, its neighbours when they were heard."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

from ironbell.agent import attributes, links, machine
from ironbell.codec.lldp import Neighbour
from ironbell.codec.proto import workflow_pb2


class Inventory:
    """The attributes that go out with each request for an action."""

    def __init__(self, *, detects: bool = True, sys: Path = machine.SYS) -> None:
        self.current = attributes.detect(sys) if detects else workflow_pb2.AgentAttributes()
        self._sys = sys
        self._heard: dict[str, dict[tuple[str, str], Neighbour]] = {}

    async def listen(self, *, raises_links: bool = False, limit_s: float = links.LISTEN_S) -> None:
        """Take in neighbours as they are heard: until each interface has heard one, or for so long."""
        names = links.ethernet()
        if raises_links:
            links.raise_links(names, sys=self._sys)
        opened = links.listener(names)
        if opened is not None:
            with opened:
                await self._listen(opened, names, limit_s)
            await self._renew(heard_all=True)

    async def _listen(self, opened: socket.socket, names: list[str], limit_s: float) -> None:
        async with contextlib.aclosing(links.neighbours(opened, limit_s=limit_s)) as heard:
            async for interface, neighbour in heard:
                if interface in names and self._is_new(interface, neighbour):
                    await self._renew(heard_all=False)
                if all(name in self._heard for name in names):
                    return

    def _is_new(self, interface: str, neighbour: Neighbour) -> bool:
        known = self._heard.get(interface, {})
        key = (neighbour.chassis_id, neighbour.port_id)
        if not neighbour.ttl_s or key in known or len(known) == links.MAX_NEIGHBOURS:
            return False
        self._heard[interface] = {**known, key: neighbour}
        return True

    async def _renew(self, *, heard_all: bool) -> None:
        heard = {name: [known[key] for key in sorted(known)] for name, known in self._heard.items()}
        self.current = await asyncio.to_thread(attributes.detect, self._sys, heard=heard, heard_all=heard_all)
