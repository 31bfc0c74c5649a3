"""Deleting a Cluster whose name is used again: the command is about the one that it has read, and about no other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ironbell.api.client import Conflict, Preconditions
from ironbell.api.kind import Collection
from ironbell.lab.sim.virtualtime import VirtualLoop
from ironbell.operations.cluster.lifecycle import NotAppliedError, delete
from ironbell.operations.cluster.snapshot import read
from ironbell.operations.cluster.waits import wait_deleted
from support.servers.whyworld import CLUSTER, KCP, Objects

AGAIN = {**CLUSTER, "metadata": {**CLUSTER["metadata"], "uid": "uid-of-the-next"}}


class Deleting(Objects):
    """Refuses as an API server does."""

    async def delete(self, _where: Collection, _namespace: str, name: str, *, preconditions: Preconditions) -> bytes:
        if preconditions.uid != self._objects[0]["metadata"]["uid"]:
            raise Conflict(f"the UID in the precondition ({preconditions.uid}) does not match")
        self._objects = self._objects[1:]
        return b"{}"


def run(work: Any) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work)


def test_a_cluster_that_took_the_name_is_not_deleted() -> None:
    async def main() -> None:
        old, now = await read(Deleting(CLUSTER, KCP), "site", "one"), Deleting(AGAIN, KCP)  # type: ignore[arg-type]
        with pytest.raises(NotAppliedError, match="replaced by another one of this name") as error:
            await delete(now, old)  # type: ignore[arg-type]
        assert str(error.value.about) == "Cluster site/one"
        await delete(now, replace(old, cluster=AGAIN))  # type: ignore[arg-type]
        assert now._objects == (KCP,)

    run(main())


def test_a_cluster_that_took_the_name_is_not_waited_for() -> None:
    async def main() -> None:
        await wait_deleted(Objects(AGAIN, KCP), CLUSTER, timeout_s=60, report=lambda _: None)  # type: ignore[arg-type]

    run(main())
