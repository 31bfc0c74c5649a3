"""The token of a boot is given out once, however many replicas are asked at once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from ironbell.api.client import NotFound
from ironbell.api.tinkerbell.hardware import HARDWARE, Hardware
from ironbell.base.clock import ManualClock, SystemClock
from ironbell.base.randomness import SystemRandomness
from ironbell.contract.servers import boot_token
from ironbell.contract.servers.boot_token import BOOT_FOR
from ironbell.kube.testing.memory import MemoryApi
from ironbell.services.boot.tokens import BootTokens, Issued


async def stored(api: MemoryApi) -> Hardware:
    return HARDWARE.decode(await api.get(HARDWARE.collection, "ns", "m1"))


async def an_api(boot_for: str) -> MemoryApi:
    api = MemoryApi()
    api.serve([HARDWARE])
    annotations = {BOOT_FOR: boot_for} if boot_for else {}
    metadata = {"name": "m1", "namespace": "ns", "annotations": annotations}
    body = {"apiVersion": HARDWARE.api_version, "kind": "Hardware", "metadata": metadata, "spec": {}}
    await api.create(HARDWARE.collection, "ns", msgspec.json.encode(body))
    return api


def replica(api: MemoryApi) -> BootTokens:
    return BootTokens(api, ManualClock(), SystemRandomness())


async def test_a_token_is_stored_as_digests_before_it_is_given_out():
    api = await an_api("wf")
    issued = await replica(api).issue(await stored(api), peer="192.0.2.10")
    assert len(issued.token) == 64
    hardware = await stored(api)
    assert boot_token.agent_objection(hardware, "wf", issued.token, SystemClock().now()) is None
    assert issued.token not in str(hardware.metadata.annotations)


async def test_no_token_where_no_workflow_wants_the_boot():
    api = await an_api("")
    assert await replica(api).issue(await stored(api), peer="192.0.2.10") == Issued()


async def test_of_many_who_ask_at_once_at_most_one_gets_a_token_and_it_is_revoked():
    api = await an_api("wf")
    known = await stored(api)
    answers = await asyncio.gather(*(replica(api).issue(known, peer=f"192.0.2.{n}") for n in range(20)))
    given = [one.token for one in answers if one.token]
    assert len(given) == 1
    assert sum(1 for one in answers if one.rejection) == 19
    assert boot_token.agent_objection(await stored(api), "wf", given[0], SystemClock().now()) is not None


async def test_nothing_is_given_out_when_nothing_could_be_stored():
    api = await an_api("wf")
    known = await stored(api)
    await api.delete(HARDWARE.collection, "ns", "m1")
    with pytest.raises(NotFound):
        await replica(api).issue(known, peer="192.0.2.10")
