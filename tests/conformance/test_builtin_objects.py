"""Kubernetes' own kinds: what is filled in, what is refused, and how they change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.api.kubeapi import KubeApi
from support.api.recorded import Case, ask, cases, each


@pytest.fixture(scope="module")
def place(api: KubeApi) -> Iterator[str]:
    """A namespace for all tests of the module."""
    api.made("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "builtin"}})
    yield "builtin"
    api.delete("/api/v1/namespaces/builtin")


@each("builtin_objects")
def test_defaults(api: KubeApi, place: str, case: Case) -> None:
    answer = ask(api, case, namespace=place)
    if "/namespaces/NS/" not in case.path and answer.status == 201:
        api.delete(f"{case.path}/{answer.json['metadata']['name']}")


@each("builtin_faults")
def test_fault(api: KubeApi, place: str, case: Case) -> None:
    ask(api, case, namespace=place)


def test_life_of_a_deployment(api: KubeApi, namespace: str) -> None:
    for case in cases("deployment_life"):
        ask(api, case, namespace=namespace)
