"""What the metadata service tells over real HTTP of servers that are held, released, or half installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, web

from ironbell.api.capt.names import LABEL_OWNER_NAME, LABEL_OWNER_NAMESPACE
from ironbell.api.tinkerbell.hardware import HARDWARE
from ironbell.contract.servers.boot_token import PLACEHOLDER, Identity, Mint, annotation, metadata_token, minted
from ironbell.contract.servers.claim import HELD, USER_DATA_OF, WITHDRAWN
from ironbell.contract.servers.directory import HardwareDirectory
from ironbell.contract.servers.restored import RESTORED
from ironbell.services.metadata.http import MetadataHttp

SECRET = "#cloud-config\n# password: of-the-vendor\n"
INSTRUCTIONS = ("/2009-04-04/user-data", "/nocloud/user-data", "/nocloud/vendor-data")
DESCRIPTION = ("/2009-04-04/meta-data/hostname", "/nocloud/meta-data", "/nocloud/network-config", "/metadata")


def document(*, claimed: bool = False, user_data: str | None = SECRET, **annotations: str) -> dict[str, Any]:
    labels = {LABEL_OWNER_NAME: "m", LABEL_OWNER_NAMESPACE: "site"} if claimed else {}
    ip = {"address": "127.0.0.1", "netmask": "255.0.0.0"}
    interface = {"dhcp": {"mac": "52:54:00:aa:00:01", "hostname": "one", "ip": ip}}
    return {
        "metadata": {"name": "one", "namespace": "site", "annotations": annotations, "labels": labels},
        "spec": {"interfaces": [interface], "userData": user_data, "vendorData": SECRET},
    }


@asynccontextmanager
async def served(body: dict[str, Any], identity: Identity = Identity.COMPAT) -> AsyncIterator[ClientSession]:
    directory = HardwareDirectory()
    directory.upsert(HARDWARE.decode(msgspec.json.encode(body)))
    application = web.Application()
    application.add_routes(MetadataHttp(directory, lambda _namespace, _name: None, identity=identity).routes())
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
            yield client
    finally:
        await runner.cleanup()


async def asked(client: ClientSession, path: str) -> tuple[int, str]:
    async with client.get(path) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (document(), (200, 200, 200)),
        (document(user_data=None, **{USER_DATA_OF: WITHDRAWN}), (404, 200, 200)),
        (document(**{RESTORED: '{"backup": "2026-11-22T12:00:00Z"}'}), (404, 200, 200)),
        (document(claimed=True, **{USER_DATA_OF: "site/m 7"}), (503, 503, 503)),
        (document(claimed=True, **{USER_DATA_OF: "site/m 7", HELD: "stop"}), (503, 503, 503)),
    ],
    ids=["told", "withdrawn", "restored", "half installed", "held"],
)
async def test_one_rule_for_every_tree(body: dict[str, Any], statuses: tuple[int, ...]) -> None:
    is_told = statuses == (200, 200, 200)
    async with served(body) as client:
        for path, status in zip(INSTRUCTIONS, statuses, strict=True):
            found, text = await asked(client, path)
            assert (path, found, "password" in text) == (path, status, is_told)
        for path in DESCRIPTION:
            found, text = await asked(client, path)
            assert (path, found, "password" in text) == (path, 200, False)


async def test_after_an_installation_by_token_the_address_alone_is_told_nothing() -> None:
    token = "ab" * 32
    booted = annotation(minted(Mint("wf"), token, now="2026-11-22T12:00:00Z"))
    async with served(document(**booted), Identity.OWN) as client:
        for path in (*INSTRUCTIONS, *DESCRIPTION[:3]):
            for base, status in (("", 404), (f"/t/{PLACEHOLDER}", 404), (f"/t/{metadata_token(token)}", 200)):
                assert (base, path, (await asked(client, base + path))[0]) == (base, path, status)
        assert (await asked(client, "/metadata"))[0] == 200, "the in-memory OS has no such token"
    # where no agent had a token, the name that stands for it was not filled in
    for identity in (Identity.OWN, Identity.COMPAT):
        async with served(document(), identity) as client:
            assert await asked(client, f"/t/{PLACEHOLDER}/2009-04-04/user-data") == (200, SECRET)
            assert (await asked(client, "/t/wrong/2009-04-04/user-data"))[0] == 404
