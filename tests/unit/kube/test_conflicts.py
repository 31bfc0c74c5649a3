"""After a conflict a key waits until the cache shows something newer: until then it would decide the same again."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import msgspec
import pytest

from ironbell.api.client import AlreadyExists, Answer, Call, Conflict, PatchType
from ironbell.api.core import CONFIG_MAP, SECRET, ConfigMap
from ironbell.api.core.event import EVENT
from ironbell.base.randomness import SeededRandomness
from ironbell.kube.client import Client
from ironbell.kube.decision import DONE, Decision, Key, create, do, patch
from ironbell.kube.manager.controller import Controller
from ironbell.kube.reconciler import Cache, Declaration, Watch
from ironbell.kube.testing import MemoryApi, running
from ironbell.kube.testing.memory import LoopClock
from support.waiting import until

LAG_S = 4.0


class Api(MemoryApi):
    """Counts refusals."""

    def __init__(self) -> None:
        super().__init__(clock=LoopClock())
        self.serve([CONFIG_MAP, SECRET, EVENT])
        self.refused = 0

    async def call(self, call: Call) -> Answer:
        try:
            return await super().call(call)
        except (Conflict, AlreadyExists):
            self.refused += 1
            raise

    def data(self, name: str) -> dict[str, str]:
        found = self.objects[CONFIG_MAP.collection]["default", name]
        return found.get("data") or {}


class Copier:
    """Writes into its ConfigMap how often others wrote, and keeps a Secret of the same name."""

    name = "copier"
    declaration = Declaration(CONFIG_MAP, watches=(Watch(SECRET, lambda secret, _cache: [secret.key]),))

    def observe(self, cache: Cache, key: Key) -> tuple[ConfigMap, bool] | None:
        found = cache.get(CONFIG_MAP, *key)
        return None if found is None else (found, cache.get(SECRET, *key) is not None)

    def decide(self, observed: tuple[ConfigMap, bool], now: datetime) -> Decision:
        obj, has_secret = observed
        made = None if has_secret else create(SECRET, {"metadata": {"name": obj.metadata.name, "namespace": "default"}})
        if obj.data.get("copy") == obj.data.get("original") and has_secret:
            return DONE
        body = {"data": {"copy": obj.data.get("original")}}
        return do(made, patch(CONFIG_MAP, obj, body, locked=True))


@pytest.mark.parametrize("seed", range(3))
async def test_a_conflict_is_not_repeated_while_the_cache_is_behind(seed: int) -> None:
    api, source = Api(), SeededRandomness(seed)
    await Client(api).create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}, "data": {"original": "0"}})
    options: dict[str, Any] = {"clock": LoopClock(), "randomness": SeededRandomness(seed)}
    async with running(api, Controller(Copier()), lag_s=lambda: LAG_S, **options) as manager:
        await until(lambda: api.data("c").get("copy") == "0")
        await until(lambda: manager.is_idle)
        for number in range(1, 6):
            body = msgspec.json.encode({"data": {"original": str(number)}})
            await api.patch(CONFIG_MAP.collection, "default", "c", body, patch_type=PatchType.MERGE)
            await asyncio.sleep(source.fraction() * LAG_S)
        await until(lambda: api.data("c").get("copy") == "5")
        await until(lambda: manager.is_idle)
    # at most one for each write of somebody else
    assert api.refused <= 5


async def test_what_somebody_else_made_is_not_made_again_and_again() -> None:
    api = Api()
    async with running(
        api, Controller(Copier()), lag_s=lambda: LAG_S, clock=LoopClock(), randomness=SeededRandomness(1)
    ) as manager:
        metadata = {"name": "c", "namespace": "default"}
        await Client(api).create(CONFIG_MAP, {"metadata": metadata, "data": {"original": "0"}})
        await asyncio.sleep(LAG_S / 2)
        await Client(api).create(SECRET, {"metadata": metadata})
        await until(lambda: api.data("c").get("copy") == "0")
        await until(lambda: manager.is_idle)
    assert api.refused == 1
