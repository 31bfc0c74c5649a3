"""Watches: where they begin, what they show, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.kubeapi import KubeApi
from support.api.kubeobjects import refusal, secret

END = {"k8s.io/initial-events-end": "true"}
UNPARSED = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'


@pytest.fixture
def secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"


def version(api: KubeApi, path: str) -> str:
    return str(api.get(path).json["metadata"]["resourceVersion"])


def seen(
    api: KubeApi, path: str, count: int, *, headers: dict[str, str] | None = None, **query: Any
) -> list[dict[str, Any]]:
    """The first so many events of a watch; with none wanted, that there are none for a second."""
    if count:
        with api.with_headers(**(headers or {})).watch(path, **query) as watch:
            return watch.take(count)
    answer = api.get(path, watch="true", timeoutSeconds=1, headers=headers, **query)
    assert answer.status == 200, answer.body
    return [json.loads(line) for line in answer.body.splitlines()]


def told(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "0"}])
def test_without_a_version_what_is_there_comes_first(api: KubeApi, secrets: str, start: dict[str, str]) -> None:
    for name in ("a", "b"):
        api.made(secrets, secret(name))
    version(api, secrets)
    assert sorted(told(seen(api, secrets, 2, **start))) == [("ADDED", "a"), ("ADDED", "b")]


def test_behind_a_version_everything_comes_in_order(api: KubeApi, secrets: str) -> None:
    start = version(api, secrets)
    api.made(secrets, secret("a"))
    api.patch(f"{secrets}/a", {"metadata": {"labels": {"x": "1"}}})
    api.made(secrets, secret("b"))
    api.delete(f"{secrets}/a")
    events = seen(api, secrets, 4, resourceVersion=start)
    assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_the_last_event_of_an_object_has_its_last_state_and_a_new_version(api: KubeApi, secrets: str) -> None:
    made = api.made(secrets, secret("a", {"labels": {"x": "1"}}))
    before = made["metadata"]["resourceVersion"]
    api.delete(f"{secrets}/a")
    (event,) = seen(api, secrets, 1, resourceVersion=before)
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["labels"] == {"x": "1"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(before)


def test_a_watch_of_one_object_by_name(api: KubeApi, secrets: str) -> None:
    start = version(api, secrets)
    for name in ("a", "b"):
        api.made(secrets, secret(name))
    assert told(seen(api, secrets, 1, resourceVersion=start, fieldSelector="metadata.name=b")) == [("ADDED", "b")]


def test_objects_come_into_a_selector_and_leave_it(api: KubeApi, secrets: str) -> None:
    start = version(api, secrets)
    path = f"{secrets}/a"
    api.made(secrets, secret("a"))
    api.patch(path, {"metadata": {"labels": {"on": "1"}}})
    api.patch(path, {"metadata": {"annotations": {"x": "y"}}})
    left = api.patch(path, {"metadata": {"labels": {"on": "0"}}}).json
    api.patch(path, {"metadata": {"annotations": {"x": "z"}}})
    api.patch(path, {"metadata": {"labels": {"on": "1"}}})
    api.delete(path)
    events = seen(api, secrets, 5, resourceVersion=start, labelSelector="on=1")
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"on": "1"}
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_a_field_selector_is_left_as_well(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/events"
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "A", "type": "Normal",
        "involvedObject": {"kind": "Secret", "namespace": namespace, "name": "s"},
    }  # fmt: skip
    start = version(api, path)
    api.made(path, event)
    api.patch(f"{path}/e", {"reason": "B"})
    assert told(seen(api, path, 2, resourceVersion=start, fieldSelector="reason=A")) == [
        ("ADDED", "e"),
        ("DELETED", "e"),
    ]


def test_initial_events_end_with_a_bookmark(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    newest = int(version(api, secrets))
    events = seen(
        api, secrets, 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    assert told(events[:1]) == [("ADDED", "a")]
    mark = events[1]
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == END
    assert (mark["object"]["kind"], mark["object"]["apiVersion"]) == ("Secret", "v1")
    assert int(mark["object"]["metadata"]["resourceVersion"]) >= newest


def test_initial_events_of_nothing_are_a_bookmark(api: KubeApi, secrets: str) -> None:
    events = seen(
        api, secrets, 1, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    assert [event["type"] for event in events][:1] == ["BOOKMARK"]
    assert END.items() <= events[0]["object"]["metadata"]["annotations"].items()


def test_initial_events_not_older_than_a_write(api: KubeApi, secrets: str) -> None:
    made = api.made(secrets, secret("a"))
    events = seen(
        api, secrets, 1, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true",
        resourceVersion=made["metadata"]["resourceVersion"],
    )  # fmt: skip
    assert told(events[:1]) == [("ADDED", "a")]


def test_what_comes_after_the_initial_events(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    with api.watch(
        secrets, sendInitialEvents=True, resourceVersionMatch="NotOlderThan", allowWatchBookmarks=True
    ) as watch:
        watch.until(lambda event: event["type"] == "BOOKMARK")
        api.made(secrets, secret("b"))
        event = watch.until(lambda event: event["type"] != "BOOKMARK")
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


def test_without_bookmarks_none_ends_the_initial_events(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    api.made(secrets, secret("b"))
    events = seen(api, secrets, 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    assert sorted(told(events)) == [("ADDED", "a"), ("ADDED", "b")]


def test_initial_events_can_be_left_out(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    version(api, secrets)
    events = seen(api, secrets, 0, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
    assert told(events) == []


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        (
            {"sendInitialEvents": "true"},
            ["Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"],
        ),
        (
            {"sendInitialEvents": "false", "resourceVersionMatch": "Exact"},
            [
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                'Unsupported value: "Exact": supported values: "NotOlderThan"',
            ],
        ),
        (
            {"resourceVersionMatch": "NotOlderThan"},
            ["Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"],
        ),
    ],
)
def test_options_that_do_not_go_together(api: KubeApi, secrets: str, query: dict[str, str], faults: list[str]) -> None:
    answer = api.get(secrets, watch="true", **query)
    texts = [f"resourceVersionMatch: {fault}" for fault in faults]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    assert refusal(answer) == (422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {listed}')


def test_initial_events_of_a_version_that_has_not_come(api: KubeApi, secrets: str) -> None:
    (event,) = seen(
        api, secrets, 1, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", resourceVersion="999999999"
    )
    status = event["object"]
    assert (event["type"], status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
    assert status["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
    assert status["details"]["retryAfterSeconds"] == 1


@pytest.mark.differs("A malformed request is the client's fault")
def test_a_malformed_version(api: KubeApi, secrets: str) -> None:
    answer = api.get(secrets, watch="true", resourceVersion="abc")
    assert (answer.status, answer.message) == (500, UNPARSED)


@pytest.mark.differs("A watch from a version that never existed is rejected")
def test_a_version_that_has_not_come_is_waited_for(api: KubeApi, secrets: str) -> None:
    assert seen(api, secrets, 0, resourceVersion="999999999") == []


def test_the_client_says_how_long_a_watch_lasts(api: KubeApi, secrets: str) -> None:
    answer = api.get(secrets, watch="true", timeoutSeconds=1, resourceVersion=version(api, secrets))
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("value", ["1", "", "yes"])
def test_anything_but_no_is_a_watch(api: KubeApi, secrets: str, value: str) -> None:
    start = version(api, secrets)
    api.made(secrets, secret("a"))
    with api.watch(f"{secrets}", watch=value, resourceVersion=start) as watch:
        assert told(watch.take(1)) == [("ADDED", "a")]


@pytest.mark.parametrize("value", ["0", "false", "False"])
def test_no_is_a_list(api: KubeApi, secrets: str, value: str) -> None:
    assert api.get(secrets, watch=value).json["kind"] == "SecretList"


def test_one_object_is_not_watched_at_its_own_path(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    assert api.get(f"{secrets}/a", watch="true").json["kind"] == "Secret"


def test_a_watch_of_tables_has_the_columns_once(api: KubeApi, secrets: str) -> None:
    start = version(api, secrets)
    for name in ("a", "b"):
        api.made(secrets, secret(name))
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    events = seen(api, secrets, 2, resourceVersion=start, headers=accept)
    assert [event["object"]["kind"] for event in events] == ["Table", "Table"]
    assert [column["name"] for column in events[0]["object"]["columnDefinitions"]] == ["Name", "Type", "Data", "Age"]
    assert events[1]["object"]["columnDefinitions"] in ([], None)
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["a", "b"]


@pytest.mark.parametrize("include", ["", "None", "Object"])
def test_a_streamed_list_of_tables_is_that_of_gets(api: KubeApi, secrets: str, include: str) -> None:
    for name in ("a", "b"):
        api.made(secrets, secret(name))
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    more = {"includeObject": include} if include else {}
    gets = [api.get(f"{secrets}/{name}", headers=accept, **more).json for name in ("a", "b")]
    gets[1]["columnDefinitions"] = None
    watched = seen(
        api, secrets, 3, headers=accept, allowWatchBookmarks="true", sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan", fieldSelector="type=Opaque", **more,
    )  # fmt: skip
    assert [event["type"] for event in watched] == ["ADDED", "ADDED", "BOOKMARK"]
    for event, expected in zip(watched, gets, strict=False):
        event["object"]["rows"][0]["cells"][3] = expected["rows"][0]["cells"][3] = "age"
        assert event["object"] == expected
    mark = watched[2]["object"]
    (row,) = mark["rows"]
    assert row["cells"] == ["", "", 0, "<unknown>"]
    assert row["object"]["metadata"]["annotations"] == END
    assert row["object"]["kind"] == ("Secret" if include == "Object" else "PartialObjectMetadata")
    assert row["object"]["metadata"]["resourceVersion"] == mark["metadata"]["resourceVersion"]


def test_a_watch_of_metadata(api: KubeApi, secrets: str) -> None:
    start = version(api, secrets)
    made = api.made(secrets, secret("a", data={"k": "dg=="}))
    accept = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    (event,) = seen(api, secrets, 1, resourceVersion=start, headers=accept)
    assert event["type"] == "ADDED"
    assert event["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }


def test_a_watch_across_namespaces(api: KubeApi, secrets: str, namespace: str) -> None:
    start = version(api, secrets)
    api.made(secrets, secret("a"))
    events = seen(api, "/api/v1/secrets", 1, resourceVersion=start, fieldSelector=f"metadata.namespace={namespace}")
    assert told(events) == [("ADDED", "a")]


def test_a_watch_sees_a_deletion_mark_as_a_change(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a", {"finalizers": ["example.org/f"]}))
    start = version(api, secrets)
    api.delete(f"{secrets}/a")
    api.patch(f"{secrets}/a", {"metadata": {"finalizers": None}})
    events = seen(api, secrets, 2, resourceVersion=start)
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    assert "deletionTimestamp" in events[0]["object"]["metadata"]


def test_a_watch_begins_where_a_list_ended(api: KubeApi, secrets: str) -> None:
    api.made(secrets, secret("a"))
    listed = version(api, secrets)
    api.made(secrets, secret("b"))
    assert told(seen(api, secrets, 1, resourceVersion=listed)) == [("ADDED", "b")]
