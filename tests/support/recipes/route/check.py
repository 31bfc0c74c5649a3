"""`/labels` over HTTP: a machine reads its own labels, by its address or by its token."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web

from ironbell.api.meta import ObjectMeta
from ironbell.api.tinkerbell.hardware import Hardware, HardwareSpec
from ironbell.api.tinkerbell.interface import Dhcp, Interface, Ip
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.services.metadata.http import MetadataHttp


def hardware(address: str) -> Hardware:
    interface = Interface(dhcp=Dhcp(mac="52:54:00:aa:00:01", ip=Ip(address=address)))
    labels = {"rack": "r17", "pool": "blue"}
    meta = ObjectMeta(name="a", namespace="site", labels=labels)
    return Hardware(metadata=meta, spec=HardwareSpec(interfaces=[interface]))


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[ClientSession]:
    directory = HardwareDirectory()
    directory.upsert(hardware(request.param))
    application = web.Application()
    application.add_routes(MetadataHttp(directory, lambda _namespace, _name: None).routes())
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:
        yield session
    await runner.cleanup()


@pytest.mark.parametrize("client", ["127.0.0.1"], indirect=True)
async def test_a_machine_reads_its_labels(client: ClientSession) -> None:
    async with client.get("/labels") as response:
        assert response.status == 200
        assert await response.text() == "pool=blue\nrack=r17\n"


@pytest.mark.parametrize("client", ["192.0.2.99"], indirect=True)
async def test_another_machine_reads_nothing(client: ClientSession) -> None:
    async with client.get("/labels") as response:
        assert response.status == 404
