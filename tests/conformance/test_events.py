"""Events in both of their groups, and leases."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import names, refusal


@pytest.fixture
def old(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/events"


@pytest.fixture
def new(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def about(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "one", "uid": "1"}


def old_event(namespace: str, name: str = "e") -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about(namespace),
        "reason": "Made", "message": "it was made", "type": "Normal", "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "tests", "host": "here"},
    }  # fmt: skip


def new_event(namespace: str, name: str = "e") -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "regarding": about(namespace),
        "reason": "Made", "note": "it was made", "type": "Normal", "action": "Make",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.org/tests",
        "reportingInstance": "tests-1",
    }  # fmt: skip


def test_an_old_event_is_seen_in_the_new_group(api: KubeApi, namespace: str, old: str, new: str) -> None:
    api.made(old, old_event(namespace))
    seen = api.get(f"{new}/e").json
    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert seen["regarding"] == about(namespace)
    assert (seen["note"], seen["reason"], seen["type"]) == ("it was made", "Made", "Normal")
    assert seen["deprecatedCount"] == 1
    assert seen["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    assert seen["deprecatedSource"] == {"component": "tests", "host": "here"}


def test_a_new_event_is_seen_in_the_old_group(api: KubeApi, namespace: str, old: str, new: str) -> None:
    api.made(new, new_event(namespace))
    seen = api.get(f"{old}/e").json
    assert seen["apiVersion"] == "v1"
    assert seen["involvedObject"] == about(namespace)
    assert (seen["message"], seen["reason"], seen["action"]) == ("it was made", "Made", "Make")
    assert seen["reportingComponent"] == "example.org/tests"
    assert seen["reportingInstance"] == "tests-1"
    assert seen["eventTime"] == "2026-01-01T00:00:00.000000Z"


def test_lists_hold_the_events_of_both(api: KubeApi, namespace: str, old: str, new: str) -> None:
    api.made(old, old_event(namespace, "a"))
    api.made(new, new_event(namespace, "b"))
    assert (names(api.get(old)), names(api.get(new))) == (["a", "b"], ["a", "b"])


def test_a_watch_of_one_group_sees_the_other(api: KubeApi, namespace: str, old: str, new: str) -> None:
    version = api.get(new).json["metadata"]["resourceVersion"]
    with api.watch(new, resourceVersion=version) as watch:
        api.made(old, old_event(namespace))
        event = watch.next()
    assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", "events.k8s.io/v1")
    assert event["object"]["note"] == "it was made"


def test_a_series_grows(api: KubeApi, namespace: str, old: str, new: str) -> None:
    api.made(new, new_event(namespace))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    after = api.patch(f"{new}/e", {"series": series})
    assert (after.status, after.json["series"]) == (200, series)
    assert api.get(f"{old}/e").json["series"] == series


@pytest.mark.parametrize(
    ("missing", "field"),
    [
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
        ("eventTime", "eventTime"),
    ],
)
def test_a_new_event_says_more(api: KubeApi, namespace: str, new: str, missing: str, field: str) -> None:
    value = {key: part for key, part in new_event(namespace).items() if key != missing}
    answer = api.post(new, value)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in {cause["field"] for cause in answer.causes}


def test_an_old_event_need_not(api: KubeApi, namespace: str, old: str) -> None:
    value = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": namespace},
    }  # fmt: skip
    assert api.post(old, value).status == 201


def test_an_event_is_beside_what_it_is_about(api: KubeApi, old: str) -> None:
    answer = api.post(old, old_event("elsewhere"))
    assert refusal(answer) == (
        422,
        "Invalid",
        'Event "e" is invalid: involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace',
    )


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("involvedObject.name=one", ["e"]),
        ("involvedObject.name=two", []),
        ("involvedObject.kind=ConfigMap,reason=Made", ["e"]),
        ("type!=Normal", []),
        ("involvedObject.uid=1", ["e"]),
        ("source=tests", ["e"]),
    ],
)
def test_events_are_selected_by_fields(api: KubeApi, namespace: str, old: str, selector: str, found: list[str]) -> None:
    api.made(old, old_event(namespace))
    assert names(api.get(old, fieldSelector=selector)) == found


def test_a_lease(api: KubeApi, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    time = "2026-01-01T00:00:00.123456Z"
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": time, "renewTime": time}
    value = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    made = api.made(path, value)
    assert made["spec"] == spec
    assert api.put(f"{path}/l", made | {"spec": spec | {"leaseTransitions": 1}}).json["spec"]["leaseTransitions"] == 1
    assert api.put(f"{path}/l", made).reason == "Conflict"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"leaseDurationSeconds": -1}, "spec.leaseDurationSeconds"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions"),
    ],
)
def test_leases_that_are_none(api: KubeApi, namespace: str, spec: dict[str, Any], field: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    value = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    answer = api.post(path, value)
    assert (answer.status, answer.reason, answer.causes[0]["field"]) == (422, "Invalid", field)
