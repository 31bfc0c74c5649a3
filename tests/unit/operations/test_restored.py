"""What a person says of servers and pools after a restore, as any front end does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ironbell.api.bmc import JOB, TASK
from ironbell.api.capt import TINKERBELL_MACHINE
from ironbell.api.client import NotFound
from ironbell.api.core import NAMESPACE
from ironbell.api.inclusteripam import GLOBAL_IN_CLUSTER_IP_POOL, IN_CLUSTER_IP_POOL
from ironbell.api.tinkerbell import HARDWARE, WORKFLOW
from ironbell.contract.servers.claim import HELD
from ironbell.contract.servers.restored import RESTORED
from ironbell.kube.client import Client
from ironbell.kube.testing.memory import MemoryApi
from ironbell.operations.restored import (
    Confirmation,
    Installation,
    NotConfirmedError,
    confirm_hardware,
    confirm_pools,
    hold,
)

BACKUP = datetime(2026, 11, 22, 9, tzinfo=UTC)
FREE, BUSY, ELSEWHERE = ("default", "free"), ("default", "busy"), ("rack-2", "other")


async def site() -> MemoryApi:
    """Two servers, one of them with a Workflow under way, another in a second namespace, and pools of both kinds."""
    api = MemoryApi()
    api.serve(
        [HARDWARE, WORKFLOW, JOB, TASK, TINKERBELL_MACHINE, NAMESPACE, IN_CLUSTER_IP_POOL, GLOBAL_IN_CLUSTER_IP_POOL]
    )
    client = Client(api)
    for name in ("default", "rack-2"):
        await client.create(NAMESPACE, {"metadata": {"name": name}})
    for namespace, name in (FREE, BUSY, ELSEWHERE):
        await client.create(HARDWARE, {"metadata": {"namespace": namespace, "name": name}})
    await client.create(WORKFLOW, under_way("install", hardwareRef="busy"))
    await client.create(IN_CLUSTER_IP_POOL, {"metadata": {"namespace": "default", "name": "pool"}})
    await client.create(GLOBAL_IN_CLUSTER_IP_POOL, {"metadata": {"name": "pool"}})
    return api


def under_way(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": name}, "spec": spec}


async def annotations(api: MemoryApi, namespace: str, name: str) -> dict[str, str]:
    found: dict[str, str] = msgspec.json.decode(await api.get(HARDWARE.collection, namespace, name))["metadata"].get(
        "annotations", {}
    )
    return found


async def test_servers_of_a_namespace_are_held_and_confirmed() -> None:
    api = await site()
    marked = await hold(api, BACKUP, namespace="default")
    assert (marked.hardware, marked.pools) == (2, 1)
    assert "2026-11-22T09:00:00Z" in (await annotations(api, *FREE))[HELD]
    assert await annotations(api, *ELSEWHERE) == {}
    assert await confirm_hardware(api, ["free"], namespace="default") == {FREE: Confirmation.CONFIRMED}
    assert not {HELD, RESTORED} & (await annotations(api, *FREE)).keys()
    assert await confirm_hardware(api, ["free"], namespace="default") == {FREE: Confirmation.NOT_HELD}


async def test_an_installation_under_way_needs_a_decision_and_until_then_nothing_is_confirmed() -> None:
    api = await site()
    await hold(api, BACKUP)
    with pytest.raises(NotConfirmedError) as error:
        await confirm_hardware(api)
    (objection,) = error.value.objections
    assert objection.startswith("busy: workflow install was under way: ")
    assert HELD in await annotations(api, *FREE)
    results = await confirm_hardware(api, outcome=Installation.DONE)
    assert results == dict.fromkeys((BUSY, FREE, ELSEWHERE), Confirmation.CONFIRMED)
    assert await annotations(api, *BUSY) == {"v1alpha1.tinkerbell.org/provisioned": "true"}
    with pytest.raises(NotFound):
        await api.get(WORKFLOW.collection, "default", "install")


async def test_an_installation_is_continued() -> None:
    api = await site()
    await hold(api, BACKUP)
    assert (await confirm_hardware(api, ["busy"], namespace="default", outcome=Installation.CONTINUE))[BUSY]
    assert await annotations(api, *BUSY) == {}
    await api.get(WORKFLOW.collection, "default", "install")


async def test_pools_of_both_kinds_are_confirmed() -> None:
    api = await site()
    await hold(api, BACKUP)
    kinds: list[tuple[Any, Any]] = [
        (IN_CLUSTER_IP_POOL, ("default", "pool")),
        (GLOBAL_IN_CLUSTER_IP_POOL, ("", "pool")),
    ]
    for kind, key in kinds:
        assert await confirm_pools(api, kind, ["pool"], namespace=key[0]) == {key: Confirmation.CONFIRMED}
        assert await confirm_pools(api, kind) == {key: Confirmation.NOT_HELD}


async def test_a_server_of_another_namespace_is_named_with_it() -> None:
    api = await site()
    with pytest.raises(NotFound, match="Namespace rack-2 has an object of that name: use -n rack-2"):
        await confirm_hardware(api, ["other"], namespace="default")
