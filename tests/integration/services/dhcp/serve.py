"""A DHCP server process for the tests: settings and Hardware from a JSON file, problems and replies on stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import msgspec

from ironbell.api.tinkerbell.hardware import Hardware
from ironbell.base.clock import SystemClock
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.netboot import NetbootSettings, netboot_plan
from ironbell.services.dhcp import DhcpServer, DhcpSettings, Mode, open_dhcp_socket

NETBOOT = NetbootSettings(osie_url="http://{address}:7173", grpc_authority="{address}:42113")


def say(word: str, value: Any) -> None:
    print(word, msgspec.json.encode(value, enc_hook=str).decode(), flush=True)


async def main(file: Path) -> None:
    site = msgspec.json.decode(file.read_bytes())
    words = site["settings"]
    mode = Mode.parse(words.pop("mode", "reservation"))
    if "advertise" in words:
        words["advertise"] = IPv4Address(words["advertise"])
    settings = DhcpSettings(mode=mode, **words)
    directory = HardwareDirectory()
    for item in site["hardware"]:
        directory.upsert(msgspec.convert(item, Hardware))
    sockets = [open_dhcp_socket("lan", port) for port in settings.ports]
    # As in production: privileges end before the first packet is read.
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    async with asyncio.TaskGroup() as group:
        for sock in sockets:
            server = DhcpServer(
                sock,
                interface="lan",
                settings=settings,
                directory=directory,
                plan=lambda hardware, interface, address: netboot_plan(hardware, interface, NETBOOT, address=address),
                clock=SystemClock(),
                on_problem=lambda problem: say("problem", problem),
                on_reply=lambda reply: say("reply", [reply.kind.name, reply.hardware, reply.boot_file]),
            )
            group.create_task(server.run())
        say("ready", None)


asyncio.run(main(Path(sys.argv[1])))
