"""Which changes predicates pass."""

from __future__ import annotations

from typing import Any

import pytest

from ironbell.api.cluster.machine import MACHINE, Machine
from ironbell.api.meta import Resource
from ironbell.api.unstructured import dynamic_kind
from ironbell.kube.patches import apply
from ironbell.kube.predicates import actionable, any_of, changed, created_or_deleted, desired_state_changed

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
REPORT = {
    "metadata": {"resourceVersion": "2"},
    "status": {"conditions": [CONDITION], "deprecated": {"v1beta1": {"failureMessage": "x"}}},
}
HOST_BODY: dict[str, Any] = {**MACHINE_BODY, "apiVersion": HOST.api_version, "kind": "Host"}


def machine(patch: dict[str, Any]) -> Machine:
    return MACHINE.convert(apply(MACHINE_BODY, patch))


def host(patch: dict[str, Any]) -> Resource:
    return HOST.convert(apply(HOST_BODY, patch))


@pytest.mark.parametrize("build", [machine, host])
def test_conditions_are_reports_and_all_else_is_actionable(build: Any) -> None:
    old, is_actionable = build({}), actionable()
    assert not is_actionable(old, build(REPORT))
    assert not desired_state_changed(old, build(REPORT))
    for patch in (
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {"providerID": "x"}},
    ):
        assert is_actionable(old, build(patch))
        assert desired_state_changed(old, build(patch))
    for status in ({"phase": "Running"}, {"initialization": {"infrastructureProvisioned": True}}):
        assert is_actionable(old, build({"status": status}))
        assert not desired_state_changed(old, build({"status": status}))
    assert not actionable(reports=("phase",))(old, build({"status": {"phase": "Running"}}))


@pytest.mark.parametrize(
    "predicate", [actionable(), desired_state_changed, created_or_deleted, changed(lambda machine: machine.spec)]
)
def test_creations_and_deletions_pass(predicate: Any) -> None:
    assert predicate(None, machine({}))
    assert predicate(machine({}), None)


def test_an_object_that_gets_its_first_status() -> None:
    assert actionable()(host({"status": None}), host({}))
    assert not actionable()(host({"status": None}), host({"status": {"phase": None, "conditions": [CONDITION]}}))


def test_only_changes_of_the_selected_values_pass() -> None:
    predicate: Any = changed(lambda machine: machine.status.phase)
    assert not predicate(machine({}), machine({"spec": {"providerID": "x"}}))
    assert predicate(machine({}), machine({"status": {"phase": "Running"}}))


def test_an_absent_object_can_have_a_value() -> None:
    predicate: Any = changed(lambda machine: machine.spec.provider_id, absent="")
    assert not predicate(None, machine({}))
    assert not predicate(machine({}), None)
    assert predicate(None, machine({"spec": {"providerID": "x"}}))


def test_one_of_several_predicates_suffices() -> None:
    predicate: Any = any_of(created_or_deleted, changed(lambda machine: machine.status.phase, absent=""))
    assert predicate(machine({}), None)
    assert predicate(machine({}), machine({"status": {"phase": "Running"}}))
    assert not predicate(machine({}), machine({"spec": {"providerID": "x"}}))
