"""Paths, Accept headers and parameters mean what they mean to the real API server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.client import ApiError, BadRequest, Invalid, Preconditions, Propagation, Selector
from ironbell.apiserver.http.content.media import (
    JSON,
    PROTOBUF,
    YAML,
    Format,
    NotAcceptable,
    View,
    discovery_format,
    object_format,
    ranges,
)
from ironbell.apiserver.http.deletions import delete_parameters
from ironbell.apiserver.http.parameters import (
    flag,
    list_options,
    named,
    number,
    watch_parameters,
    write_options,
)  # fmt: skip
from ironbell.apiserver.http.target import Target, parse

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api", Target("")),
        ("/api/v1", Target("", "v1")),
        ("/apis/g", Target("g")),
        ("/apis/g/v1", Target("g", "v1")),
        ("/api/v1/namespaces", Target("", "v1", "", "namespaces")),
        ("/api/v1/namespaces/a", Target("", "v1", "", "namespaces", "a")),
        ("/api/v1/namespaces/a/status", Target("", "v1", "", "namespaces", "a", "status")),
        ("/api/v1/namespaces/a/secrets", Target("", "v1", "a", "secrets")),
        ("/api/v1/namespaces/a/secrets/s", Target("", "v1", "a", "secrets", "s")),
        ("/apis/g/v1/namespaces/a/things/t/log", Target("g", "v1", "a", "things", "t", "log")),
        ("/apis/g/v1/things/t/", Target("g", "v1", "", "things", "t")),
        ("/apis/g/v1/things/a%3Ab", Target("g", "v1", "", "things", "a:b")),
        ("/apis", None),
        ("/apis/g/v1/things/t/log/more", None),
        ("/apis/g//things", None),
        ("/metrics", None),
    ],
)
def test_paths(path: str, target: Target | None) -> None:
    assert parse(path) == target


@given(st.text(max_size=40))
def test_any_path_is_a_target_or_none(path: str) -> None:
    parse("/apis/" + path)


@pytest.mark.parametrize(
    ("accept", "shown"),
    [
        ("", Format(JSON)),
        ("*/*", Format(JSON)),
        ("application/json", Format(JSON)),
        (f"{PROTOBUF},application/json", Format(PROTOBUF)),
        ("application/json;stream=watch", Format(JSON)),
        ("application/yaml", Format(YAML)),
        ("application/json;q=0.5, application/yaml", Format(YAML)),
        (TABLE, Format(JSON, View.TABLE)),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Format(JSON, View.TABLE, "meta.k8s.io/v1beta1")),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Format(JSON, View.METADATA)),
        ("application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json", Format(JSON)),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,*/*", Format(JSON)),
    ],
)
def test_representations(accept: str, shown: Format) -> None:
    assert object_format(accept) == shown


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/json;q=0",
        "application/json;q=x",
        f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io",
    ],
)
def test_what_is_not_offered_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        object_format(accept)
    assert refused.value.code == 406


def test_protocol_buffers_hold_no_tables_and_of_custom_resources_metadata_only() -> None:
    assert object_format(f"{PROTOBUF},application/json") == Format(PROTOBUF)
    assert object_format(f"{PROTOBUF},application/json", custom=True) == Format(JSON)
    metadata = f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    assert object_format(metadata, custom=True) == Format(PROTOBUF, View.METADATA)
    assert object_format(f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}") == Format(JSON, View.TABLE)
    with pytest.raises(NotAcceptable):
        object_format(PROTOBUF, custom=True)


def test_watches_are_never_yaml() -> None:
    with pytest.raises(NotAcceptable):
        object_format("application/yaml", watching=True)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", (JSON, "v2")),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", (JSON, "v2beta1")),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", (JSON, "")),
        (f"{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", (PROTOBUF, "v2")),
        ("application/json", (JSON, "")),
        (PROTOBUF, (PROTOBUF, "")),
        ("", (JSON, "")),
    ],
)
def test_discovery_forms(accept: str, chosen: tuple[str, str]) -> None:
    assert discovery_format(accept) == chosen


@given(st.text(max_size=60))
def test_any_accept_header_is_understood_or_refused(accept: str) -> None:
    ranges(accept)
    for negotiate in (object_format, discovery_format):
        try:
            negotiate(accept)
        except NotAcceptable:
            continue


def test_flags_and_numbers() -> None:
    assert [flag({"a": value}, "a") for value in ("true", "1", "", "false", "0")] == [True, True, True, False, False]
    assert flag({}, "a") is False
    assert number({"a": "12"}, "a") == 12
    assert number({}, "a") == 0
    assert number({"a": "-1"}, "a") == 0
    for query in ({"a": "maybe"}, {"a": "1e9"}, {"a": "9" * 40}):
        with pytest.raises(BadRequest):
            number(query, "a")


def test_list_parameters() -> None:
    options = list_options({"limit": "5", "continue": "t", "labelSelector": "a=b", "fieldSelector": "c=d"})
    assert (options.limit, options.continue_token, options.selector) == (5, "t", Selector("a=b", "c=d"))


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Other", "resourceVersion": "1"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"},
    ],
)
def test_contradictory_list_parameters_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        list_options(query)


def test_watch_parameters() -> None:
    expected = watch_parameters({"resourceVersion": "5", "allowWatchBookmarks": "true", "timeoutSeconds": "7"})
    assert (expected.resource_version, expected.bookmarks, expected.timeout_s, expected.initial_events) == (
        "5",
        True,
        7,
        None,
    )
    initial = watch_parameters({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
    assert initial.initial_events is True
    for query in ({"sendInitialEvents": "true"}, {"resourceVersionMatch": "NotOlderThan"}):
        with pytest.raises(Invalid):
            watch_parameters(query)


def test_a_single_object_is_watched_by_its_name() -> None:
    assert named(Selector(), "x").fields == "metadata.name=x"
    assert named(Selector("a=b", "c=d"), "x") == Selector("a=b", "c=d,metadata.name=x")


def test_write_parameters() -> None:
    query = {"dryRun": "All", "fieldManager": "m", "fieldValidation": "Strict", "force": "true"}
    options = write_options(query, "k/1", kind="PatchOptions", applies=True)
    assert (options.dry_run, options.field_manager, options.field_validation, options.force) == (
        True, "m", "Strict", True,
    )  # fmt: skip
    assert write_options({}, "kubectl/v1.32 (linux)", kind="CreateOptions").field_manager == "kubectl"
    for query in (
        {"dryRun": "Some"},
        {"fieldManager": "m" * 200},
        {"fieldValidation": "Maybe"},
        {"fieldManager": "\n"},
    ):
        with pytest.raises(Invalid):
            write_options(query, "", kind="UpdateOptions")
    for applies, expected in ((True, {"force": "true"}), (False, {"force": "true", "fieldManager": "m"})):
        with pytest.raises(Invalid):
            write_options(expected, "", kind="PatchOptions", applies=applies)


def test_delete_parameters_come_from_the_body_or_the_query() -> None:
    body = b'{"kind":"DeleteOptions","propagationPolicy":"Foreground","preconditions":{"uid":"u"},"dryRun":["All"]}'
    given_body = delete_parameters({"propagationPolicy": "Orphan"}, body)
    assert given_body.propagation is Propagation.FOREGROUND
    assert given_body.preconditions == Preconditions(uid="u")
    assert given_body.dry_run is True
    assert delete_parameters({"propagationPolicy": "Orphan"}, b"").propagation is Propagation.ORPHAN
    assert delete_parameters({"orphanDependents": "true"}, b"").propagation is Propagation.ORPHAN
    assert delete_parameters({}, b'{"orphanDependents":false}').propagation is Propagation.BACKGROUND
    assert delete_parameters({}, b"").propagation is Propagation.BACKGROUND


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"\xff", b'{"propagationPolicy":"Never"}', b'{"dryRun":["Some"]}', b'{"preconditions":5}',
        b'{"orphanDependents":true,"propagationPolicy":"Orphan"}',
    ],
)  # fmt: skip
def test_wrong_delete_options_are_refused(body: bytes) -> None:
    with pytest.raises((BadRequest, Invalid)):
        delete_parameters({}, body)


@given(st.binary(max_size=60))
def test_any_delete_body_is_understood_or_refused(body: bytes) -> None:
    try:
        delete_parameters({}, body)
    except ApiError:
        return
