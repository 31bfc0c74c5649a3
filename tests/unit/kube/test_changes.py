"""What of a change is acted on, and what only tells."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.meta import Resource
from ironbell.api.unstructured import dynamic_kind
from ironbell.kube.changes import is_acted_on, is_specified_anew
from ironbell.kube.patches import apply

HOST = dynamic_kind("infrastructure.example.com", "v1", "Host", "hosts")
MACHINE_BODY: dict[str, Any] = {
    "apiVersion": MACHINE.api_version,
    "kind": "Machine",
    "metadata": {"name": "m", "namespace": "n", "uid": "1", "resourceVersion": "1", "generation": 1},
    "spec": {
        "clusterName": "c",
        "bootstrap": {"dataSecretName": "s"},
        "infrastructureRef": {"apiGroup": "infrastructure.example.com", "kind": "Host", "name": "h"},
    },
    "status": {"phase": "Pending"},
}
CONDITION = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": None}
TOLD = {
    "metadata": {"resourceVersion": "2"},
    "status": {"conditions": [CONDITION], "deprecated": {"v1beta1": {"failureMessage": "x"}}},
}
HOST_BODY: dict[str, Any] = {**MACHINE_BODY, "apiVersion": HOST.api_version, "kind": "Host"}


def machine(patch: dict[str, Any]) -> Machine:
    return MACHINE.convert(apply(MACHINE_BODY, patch))


def host(patch: dict[str, Any]) -> Resource:
    return HOST.convert(apply(HOST_BODY, patch))


@pytest.mark.parametrize("made", [machine, host])
def test_conditions_are_told_and_all_else_is_acted_on(made: Any) -> None:
    before = made({})
    assert not is_acted_on(before, made(TOLD))
    assert not is_specified_anew(before, made(TOLD))
    for patch in (
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {"providerID": "x"}},
    ):
        assert is_acted_on(before, made(patch))
        assert is_specified_anew(before, made(patch))
    for status in ({"phase": "Running"}, {"initialization": {"infrastructureProvisioned": True}}):
        assert is_acted_on(before, made({"status": status}))
        assert not is_specified_anew(before, made({"status": status}))
    assert not is_acted_on(before, made({"status": {"phase": "Running"}}), tells=("phase",))


@pytest.mark.parametrize("asked", [is_acted_on, is_specified_anew])
def test_a_coming_and_a_going_are_acted_on(asked: Any) -> None:
    assert asked(None, machine({}))
    assert asked(machine({}), None)


def test_an_object_that_gets_its_first_status() -> None:
    assert is_acted_on(host({"status": None}), host({}))
    assert not is_acted_on(host({"status": None}), host({"status": {"phase": None, "conditions": [CONDITION]}}))
