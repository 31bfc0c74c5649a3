"""The metadata on a second port: what upstream's default template asks for, on the port where it asks."""

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
from ironbell.app.wire.config import TOOTLES, WireConfig
from ironbell.app.wire.sockets import open_sockets
from ironbell.base.clock import SystemClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec.cel import compile_rule
from support.ports import free_port


async def asked(client: ClientSession, url: str) -> tuple[int, str]:
    async with client.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_second_port_has_the_metadata_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = WireConfig(
        folder=str(tmp_path), serves=(TOOTLES,), address="127.0.0.1", http_port=0, metadata_port=free_port()
    )
    sockets = open_sockets(config)
    ports = sockets.ports()
    assert ports["metadata"] == config.metadata_port
    opened = ApiServer.open(
        None,
        clock=SystemClock(),
        randomness=SeededRandomness(1),
        definitions=[crd_document(HARDWARE), crd_document(WORKFLOW)],
        compile_rule=compile_rule,
    )
    async with AsyncExitStack() as stack:
        stack.callback(sockets.close)
        server = await stack.enter_async_context(opened)
        api, ready = server.client(ADMIN), asyncio.Event()
        nic = {"dhcp": {"mac": "02:00:00:00:00:01", "ip": {"address": "127.0.0.1", "netmask": "255.0.0.0"}}}
        spec = {
            "interfaces": [nic],
            "userData": "#cloud-config",
            "metadata": {"instance": {"id": "i", "hostname": "n"}},
        }
        body = {"apiVersion": HARDWARE.api_version, "kind": "Hardware", "metadata": {"name": "n"}, "spec": spec}
        await api.create(HARDWARE.collection, "default", msgspec.json.encode(body))
        serving = asyncio.create_task(serve_boot(config, sockets, api, on_ready=ready.set))
        async with ClientSession() as client, asyncio.timeout(20):
            await ready.wait()
            for name in ("http", "metadata"):
                base = f"http://127.0.0.1:{ports[name]}"
                assert await asked(client, f"{base}/2009-04-04/meta-data/hostname") == (200, "n")
                assert await asked(client, f"{base}/2009-04-04/user-data") == (200, "#cloud-config")
                health = msgspec.json.decode((await asked(client, f"{base}/healthcheck"))[1])
                assert set(health) == {"git_rev", "uptime_seconds", "goroutines"}
                assert float(health["uptime_seconds"]) >= 0
            assert (await asked(client, f"http://127.0.0.1:{ports['metadata']}/metrics"))[0] == 404
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
