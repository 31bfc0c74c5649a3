"""Objects of a custom resource: checked, defaulted and pruned by their schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.api.kubeapi import KubeApi
from support.api.recorded import Case, ask, cases, each, read
from support.waiting import eventually

GROUP = "things.example.org"
NAME = f"things.{GROUP}"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def things(api: KubeApi) -> Iterator[str]:
    """A namespace in which Things are served."""
    api.made(DEFINITIONS, json.dumps(read("thing")).replace("GROUP", GROUP).encode())
    api.made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "things"}})
    eventually(lambda: api.get(f"/apis/{GROUP}/v1/things").status == 200)
    yield "things"
    api.delete(f"{DEFINITIONS}/{NAME}")
    api.delete("/api/v1/namespaces/things")


@each("custom_objects")
def test_object(api: KubeApi, things: str, case: Case) -> None:
    ask(api, case, namespace=things, group=GROUP)


def test_life_of_an_object(api: KubeApi, things: str) -> None:
    for case in cases("custom_life"):
        ask(api, case, namespace=things, group=GROUP)
    _check_a_stricter_schema(api, things)


def _check_a_stricter_schema(api: KubeApi, namespace: str) -> None:
    """What was stored is shown with new defaults, and tolerated as far as it does not change."""
    definition = api.get(f"{DEFINITIONS}/{NAME}").json
    definition["spec"] = json.loads(json.dumps(read("thing_stricter")).replace("GROUP", GROUP))["spec"]
    assert api.put(f"{DEFINITIONS}/{NAME}", definition).status == 200
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/things/a"
    eventually(lambda: api.get(path).json["spec"].get("extra") == "E")
    for case in cases("custom_ratcheting"):
        ask(api, case, namespace=namespace, group=GROUP)
