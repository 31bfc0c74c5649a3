"""Machines are told the ports that are bound, where the site was started with any free ones."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession

from ironbell.api.crd.document import crd_document
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.app.wire.boot_servers import serve_boot
from ironbell.app.wire.config import WireConfig
from ironbell.app.wire.sockets import open_sockets
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule

ADDRESS, MAC = "127.0.0.1", "02:00:00:00:00:01"


async def test_the_boot_script_names_the_ports_that_are_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = WireConfig(folder=str(tmp_path), address=ADDRESS, dhcp_mode="off", http_port=0, tftp_port=0, grpc_port=0)
    sockets = open_sockets(config)
    ports = sockets.ports()
    opened = ApiServer.open(
        None,
        clock=SystemClock(),
        randomness=SeededRandomness(1),
        definitions=[crd_document(HARDWARE), crd_document(WORKFLOW)],
        compile_rule=compile_rule,
    )
    async with AsyncExitStack() as stack:
        stack.callback(sockets.close)
        api, ready = (await stack.enter_async_context(opened)).client(ADMIN), asyncio.Event()
        dhcp = {"mac": MAC, "arch": "x86_64", "ip": {"address": ADDRESS, "netmask": "255.0.0.0"}}
        spec = {"interfaces": [{"dhcp": dhcp, "netboot": {"allowPXE": True}}]}
        body = {"apiVersion": HARDWARE.api_version, "kind": "Hardware", "metadata": {"name": "n"}, "spec": spec}
        await api.create(HARDWARE.collection, "default", msgspec.json.encode(body))
        serving = asyncio.create_task(serve_boot(config, sockets, api, on_ready=ready.set))
        async with ClientSession() as client, asyncio.timeout(20):
            await ready.wait()
            async with client.get(f"http://{ADDRESS}:{ports['http']}/ipxe/script/{MAC}/auto.ipxe") as answer:
                script = await answer.text()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert f"grpc_authority={ADDRESS}:{ports['grpc']} " in script
    assert f"http://{ADDRESS}:{ports['http']}/osie" in script
    assert ":0" not in script.replace(MAC, "")
