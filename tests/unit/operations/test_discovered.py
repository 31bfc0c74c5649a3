"""Kinds that only the API knows."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ironbell.api.client import NotFound
from ironbell.operations.discovered import Discovered, NoSuchKindError

GROUP = "infrastructure.cluster.x-k8s.io"


class Answers:
    """An API with two versions of a group, each with a kind of its own."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def raw(self, method: str, path: str) -> bytes:
        assert method == "GET"
        self.asked.append(path)
        versions = [{"version": "v1beta2"}, {"version": "v1beta1"}]
        found: dict[str, Any] = {
            f"/apis/{GROUP}": {"preferredVersion": versions[0], "versions": versions},
            f"/apis/{GROUP}/v1beta2": {"resources": [_resource("devclusters", "DevCluster")]},
            f"/apis/{GROUP}/v1beta1": {"resources": [_resource("tinkerbellclusters", "TinkerbellCluster")]},
        }
        if path not in found:
            raise NotFound("the server could not find the requested resource")
        return msgspec.json.encode(found[path])


def _resource(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": True}


def test_a_kind_is_found_in_whatever_version_of_its_group_it_is() -> None:
    answers = Answers()
    discovered = Discovered(answers)  # type: ignore[arg-type]

    async def versions() -> list[str]:
        kinds = ("DevCluster", "TinkerbellCluster", "DevCluster")
        return [(await discovered.collection(GROUP, kind)).version for kind in kinds]

    assert asyncio.run(versions()) == ["v1beta2", "v1beta1", "v1beta2"]
    assert len(answers.asked) == len(set(answers.asked))
    with pytest.raises(NoSuchKindError, match="no kind Other of infrastructure"):
        asyncio.run(discovered.collection(GROUP, "Other"))
    with pytest.raises(NoSuchKindError, match="v1beta2"):
        asyncio.run(discovered.collection(GROUP, "TinkerbellCluster", "v1beta2"))
