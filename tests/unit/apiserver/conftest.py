"""A server in memory with one custom kind, and short ways to call it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from ironbell.api.client import (
    EVERYTHING,
    NO_OPTIONS,
    ListOptions,
    PatchType,
    Preconditions,
    Propagation,
    Selector,
    WatchEvent,
    WriteOptions,
)
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN, Identity
from ironbell.apiserver.core import ApiServer
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from support.waiting import until

WIDGETS = Collection("example.org", "v1", "widgets", namespaced=True)
NAMESPACES = Collection("", "v1", "namespaces", namespaced=False)
CONFIG_MAPS = Collection("", "v1", "configmaps", namespaced=True)
SECRETS = Collection("", "v1", "secrets", namespaced=True)
NODES = Collection("", "v1", "nodes", namespaced=False)
CRDS = Collection("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)

WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "replicas": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "count": {"type": "integer"},
                            "note": {"type": "string"},
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "plain": {"type": "array", "items": {"type": "integer"}},
            },
        },
        "status": {
            "type": "object",
            "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}},
        },
    },
}


def widget_definition() -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                }
            ],
        },
    }


class Caller:
    """The API as one identity sees it, with plain data instead of bytes."""

    def __init__(self, server: ApiServer, identity: Identity = ADMIN) -> None:
        self.server = server
        self.api = server.client(identity)

    async def create(
        self,
        where: Collection,
        value: dict[str, Any],
        *,
        namespace: str = "default",
        options: WriteOptions = NO_OPTIONS,
    ) -> dict[str, Any]:
        body = msgspec.json.encode(value)
        result: dict[str, Any] = msgspec.json.decode(await self.api.create(where, namespace, body, options))
        return result

    async def get(self, where: Collection, name: str, *, namespace: str = "default", sub: str = "") -> dict[str, Any]:
        result: dict[str, Any] = msgspec.json.decode(await self.api.get(where, namespace, name, subresource=sub))
        return result

    async def replace(
        self, where: Collection, value: dict[str, Any], *, sub: str = "", options: WriteOptions = NO_OPTIONS
    ) -> dict[str, Any]:
        meta = value["metadata"]
        body = msgspec.json.encode(value)
        answer = await self.api.replace(
            where, meta.get("namespace", ""), meta["name"], body, subresource=sub, options=options
        )
        result: dict[str, Any] = msgspec.json.decode(answer)
        return result

    async def patch(
        self,
        where: Collection,
        name: str,
        value: Any,
        *,
        kind: PatchType = PatchType.MERGE,
        namespace: str = "default",
        sub: str = "",
        manager: str = "",
        force: bool = False,
        options: WriteOptions | None = None,
    ) -> dict[str, Any]:
        answer = await self.api.patch(
            where,
            namespace,
            name,
            msgspec.json.encode(value),
            patch_type=kind,
            subresource=sub,
            options=options or WriteOptions(field_manager=manager, force=force),
        )
        result: dict[str, Any] = msgspec.json.decode(answer)
        return result

    async def delete(
        self,
        where: Collection,
        name: str,
        *,
        namespace: str = "default",
        propagation: Propagation = Propagation.BACKGROUND,
        preconditions: Preconditions = Preconditions(),  # noqa: B008 - frozen
    ) -> dict[str, Any]:
        answer = await self.api.delete(where, namespace, name, propagation=propagation, preconditions=preconditions)
        result: dict[str, Any] = msgspec.json.decode(answer)
        return result

    async def names(self, where: Collection, namespace: str = "", *, labels: str = "", fields: str = "") -> list[str]:
        page = await self.api.list(where, namespace, ListOptions(Selector(labels, fields)))
        return [msgspec.json.decode(item)["metadata"]["name"] for item in page.items]

    async def watch(
        self, where: Collection, *, after: str, count: int, namespace: str = "", selector: Selector = EVERYTHING
    ) -> list[WatchEvent]:
        """The next `count` events."""
        result: list[WatchEvent] = []
        events = self.api.changes(where, namespace, resource_version=after, selector=selector)
        async with asyncio.timeout(10):
            async for event in events:
                result.append(event)
                if len(result) == count:
                    break
        return result

    async def settle(self) -> None:
        """Wait until the server has cleaned up."""
        await until(lambda: self.server.is_settled, every_s=0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[ApiServer]:
    definitions = [widget_definition()]
    async with ApiServer.open(None, clock=clock, randomness=SeededRandomness(1), definitions=definitions) as server:
        await Caller(server).settle()
        yield server


@pytest.fixture
def admin(server: ApiServer) -> Caller:
    return Caller(server)


@pytest.fixture
def as_user(server: ApiServer) -> Callable[[Identity], Caller]:
    return lambda identity: Caller(server, identity)


@pytest.fixture
def widgets() -> Collection:
    return WIDGETS


@pytest.fixture
def config_maps() -> Collection:
    return CONFIG_MAPS


@pytest.fixture
def secrets() -> Collection:
    return SECRETS


@pytest.fixture
def namespaces() -> Collection:
    return NAMESPACES


@pytest.fixture
def nodes() -> Collection:
    return NODES


@pytest.fixture
def crds() -> Collection:
    return CRDS


@pytest.fixture
def definition() -> dict[str, Any]:
    return widget_definition()


@pytest.fixture
def widget() -> Callable[..., dict[str, Any]]:
    def make(name: str = "w", *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        value: dict[str, Any] = {
            "apiVersion": "example.org/v1", "kind": "Widget",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        }  # fmt: skip
        if status is not None:
            value["status"] = status
        return value

    return make
