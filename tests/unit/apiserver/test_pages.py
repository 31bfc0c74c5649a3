"""Pages of a list show one moment, whatever is written between them."""

from __future__ import annotations

import random

import msgspec
import pytest

from ironbell.api.client import ListOptions, PatchType
from ironbell.api.core import CONFIG_MAP
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.direct import DirectApi
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness

WHERE = CONFIG_MAP.collection


async def write_something(api: DirectApi, dice: random.Random, there: set[tuple[str, str]]) -> None:
    namespace, name = dice.choice(("default", "kube-system")), f"n{dice.randrange(60)}"
    body = {"metadata": {"name": name}, "data": {"v": str(dice.random())}}
    if (namespace, name) not in there:
        await api.create(WHERE, namespace, msgspec.json.encode(body))
        there.add((namespace, name))
    elif dice.random() < 0.5:
        await api.delete(WHERE, namespace, name)
        there.discard((namespace, name))
    else:
        await api.patch(WHERE, namespace, name, msgspec.json.encode(body), patch_type=PatchType.MERGE)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("namespace", ["", "default"])
async def test_pages_show_the_moment_of_the_first(seed: int, namespace: str) -> None:
    dice, existing = random.Random(seed), set[tuple[str, str]]()
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(seed)) as server:
        api = server.client(ADMIN)
        for _ in range(80):
            await write_something(api, dice, existing)
        whole = (await api.list(WHERE, namespace)).items
        result: list[bytes] = []
        page = await api.list(WHERE, namespace, ListOptions(limit=7))
        while True:
            result += page.items
            assert page.remaining in {None, len(whole) - len(result)}
            if not page.continue_token:
                break
            for _ in range(dice.randrange(9)):
                await write_something(api, dice, existing)
            page = await api.list(WHERE, namespace, ListOptions(limit=7, continue_token=page.continue_token))
    assert result == whole
    assert len(whole) > 14
