"""Mutating policies keep to one allowance for a request, and hold nobody else to it while they wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ironbell.api.core import CONFIG_MAP
from ironbell.api.kind import Collection
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.core import ApiServer
from ironbell.apiserver.policies import mutating
from ironbell.apiserver.webhooks.review import shown_as
from ironbell.base.clock import ManualClock
from ironbell.base.randomness import SeededRandomness
from ironbell.codec import effort

GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
EXPRESSION = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
SPEC = {
    "matchConstraints": {"resourceRules": [RULE]},
    "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": EXPRESSION}}],
    "reinvocationPolicy": "Never",
}


async def test_nothing_is_limited_while_a_version_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []

    async def noting(*given: Any) -> Any:
        left.append(effort.left())
        return await shown_as(*given)

    monkeypatch.setattr(mutating, "shown_as", noting)
    async with ApiServer.open(None, clock=ManualClock(), randomness=SeededRandomness(1)) as server:
        api = server.client(ADMIN)
        for name in ("one", "two"):
            for plural, spec in (("policies", SPEC), ("policybindings", {"policyName": name})):
                where = Collection(GROUP, "v1", f"mutatingadmission{plural}", namespaced=False)
                await api.create(where, "", msgspec.json.encode({"metadata": {"name": name}, "spec": spec}))
        created = await api.create(CONFIG_MAP.collection, "default", b'{"metadata":{"name":"x"}}')
    assert msgspec.json.decode(created)["metadata"]["labels"] == {"a": "b"}
    assert set(left) == {float("inf")}
