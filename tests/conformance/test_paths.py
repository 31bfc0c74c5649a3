"""Paths and methods: what is there, what is not, and in which form the answer comes."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from support.api.kubeapi import JSON, KubeApi
from support.api.kubeobjects import config_map, refusal, secret, thing

NO_RESOURCE = (404, "NotFound", "the server could not find the requested resource")
NO_METHOD = (405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
NO_PAGE = (404, "text/plain; charset=utf-8", b"404 page not found\n")
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}))
    return f"{config_maps}/one"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v1/nope",
        "/api/v1/namespaces/default/nope",
        "/api/v1/namespaces/default/nope/x",
        "/api/v1/namespaces/default/configmaps/x/nope",
        "/api/v1/namespaces/default/configmaps/x/status",
        "/api/v1/configmaps/x",
        "/apis/apps/v9",
        "/apis/apps/v1/nope",
        "/api//v1",
    ],
)
def test_resources_that_are_not_served(api: KubeApi, path: str) -> None:
    assert refusal(api.get(path)) == NO_RESOURCE


@pytest.mark.parametrize(
    "path", ["/nope", "/apis/nope", "/apis/nope/v1", "/apis/nope/v1/x", "/healthz/nope", "/openapi", "/metrics/nope"]
)
def test_pages_that_are_not_there(api: KubeApi, path: str) -> None:
    answer = api.get(path)
    assert (answer.status, answer.headers["Content-Type"], answer.body) == NO_PAGE


def test_a_slash_at_the_end_is_no_matter(api: KubeApi, config_maps: str, one: str) -> None:
    assert api.get(f"{one}/").json == api.get(one).json
    assert api.get(f"{config_maps}/").json["kind"] == "ConfigMapList"
    assert api.get("/api/v1/").json["kind"] == "APIResourceList"


@pytest.mark.parametrize(("name", "fault"), [("%2e%2e", "\"..\": may not be '..'"), ("%2e", "\".\": may not be '.'")])
def test_names_that_are_steps_of_a_path(api: KubeApi, config_maps: str, name: str, fault: str) -> None:
    answer = api.get(f"{config_maps}/{name}")
    assert refusal(answer) == (400, "BadRequest", f"Name parameter invalid: {fault}")


def test_a_name_with_a_slash_is_not_there(api: KubeApi, config_maps: str) -> None:
    assert api.get(f"{config_maps}/a%2Fb").status in {400, 404}


@pytest.mark.parametrize(
    ("method", "at_collection"),
    [("PUT", True), ("PATCH", True), ("POST", False), ("OPTIONS", True), ("OPTIONS", False), ("TRACE", True)],
)
def test_methods_that_are_not_allowed(
    api: KubeApi, config_maps: str, one: str, method: str, *, at_collection: bool
) -> None:
    answer = api.call(method, config_maps if at_collection else one, b"{}" if method[0] == "P" else None)
    assert refusal(answer) == NO_METHOD


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_a_namespace_is_only_put_to_its_end(api: KubeApi, namespace: str, method: str) -> None:
    answer = api.call(method, f"/api/v1/namespaces/{namespace}/finalize", b"{}" if method == "PATCH" else None)
    assert refusal(answer) == NO_METHOD


def test_heads_are_for_what_is_no_resource(api: KubeApi, one: str) -> None:
    assert api.call("HEAD", one).status == 405
    answer = api.call("HEAD", "/healthz")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/apis/authorization.k8s.io/v1"])
def test_discovery_of_built_in_versions_has_no_heads(api: KubeApi, path: str) -> None:
    assert api.call("HEAD", path).status == 405


@pytest.mark.parametrize("path", ["/apis", "/apis/apps", "/apis/conf.example.org/v1", "/openapi/v3", "/healthz"])
def test_heads_of_documents(things_served: KubeApi, path: str) -> None:
    api = things_served
    answer = api.call("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Content-Type"] == api.get(path).headers["Content-Type"]


def test_api_services_are_in_discovery(api: KubeApi) -> None:
    (resource, *_) = api.get("/apis/apiregistration.k8s.io/v1").json["resources"]
    shown = ("apiservices", "apiservice", "APIService", False)
    assert (resource["name"], resource["singularName"], resource["kind"], resource["namespaced"]) == shown
    assert {"get", "list", "watch"} <= set(resource["verbs"])
    found = api.get("/apis/apiregistration.k8s.io/v1/apiservices").json
    assert (found["kind"], found["apiVersion"]) == ("APIServiceList", "apiregistration.k8s.io/v1")
    assert api.get("/apis/apiregistration.k8s.io").json["preferredVersion"]["version"] == "v1"


def test_heads_of_custom_resources(api: KubeApi, things: str) -> None:
    api.made(things, thing())
    for path, status in ((things, 200), (f"{things}/one", 200), (f"{things}/one/status", 200), (f"{things}/two", 404)):
        answer = api.call("HEAD", path)
        assert (answer.status, answer.headers["Content-Type"], answer.body) == (status, JSON, b"")


@pytest.mark.parametrize(
    ("timeout", "fault"),
    [
        ("invalid", 'invalid duration "invalid"'),
        ("5", 'missing unit in duration "5"'),
        ("1.5y", 'unknown unit "y" in duration "1.5y"'),
        (".s", 'invalid duration ".s"'),
        ("-", 'invalid duration "-"'),
        ("1s2", 'missing unit in duration "1s2"'),
        ("99999999999h", 'invalid duration "99999999999h"'),
    ],
)
def test_timeouts_that_are_none(api: KubeApi, config_maps: str, timeout: str, fault: str) -> None:
    expected = (400, "BadRequest", f"invalid timeout specified in the request URL - time: {fault}")
    query = f"?timeout={timeout}"
    assert refusal(api.get(config_maps + query)) == expected
    assert refusal(api.post(config_maps + query, config_map())) == expected
    assert api.get(f"/healthz{query}").status == 400


@pytest.mark.parametrize("timeout", ["", "0", "0s", "60s", "1h1m1.5s", "-1s", "100000h"])
def test_timeouts(api: KubeApi, config_maps: str, timeout: str) -> None:
    assert api.get(f"{config_maps}?timeout={timeout}").status == 200


def test_watches_have_a_timeout_of_their_own(api: KubeApi, config_maps: str) -> None:
    assert api.get(f"{config_maps}?watch=true&timeout=invalid&timeoutSeconds=1").status == 200


def test_a_long_query_is_read(api: KubeApi, config_maps: str) -> None:
    names = ",".join(f"name-{number:05}" for number in range(1500))
    answer = api.get(config_maps, labelSelector=f"x in ({names})")
    assert (answer.status, answer.json["items"]) == (200, [])


def test_unknown_parameters_are_no_matter(api: KubeApi, one: str) -> None:
    assert api.get(one, nope="1", alsoNot="x").status == 200


@pytest.mark.parametrize(
    ("query", "headers"),
    [("?pretty=true", {}), ("?pretty=1", {}), ("", {"User-Agent": "curl/8.0"}), ("", {"User-Agent": "Mozilla/5.0 x"})],
)
def test_people_get_lines(api: KubeApi, one: str, query: str, headers: dict[str, str]) -> None:
    body = api.get(f"{one}{query}", headers=headers).body
    assert body.startswith(b'{\n  "')
    assert json.loads(body)["data"] == {"a": "1"}


@pytest.mark.parametrize(
    ("query", "headers"),
    [("", {}), ("?pretty=false", {"User-Agent": "curl/8.0"}), ("?pretty=0", {"User-Agent": "curl/8.0"})],
)
def test_programs_get_one_line(api: KubeApi, one: str, query: str, headers: dict[str, str]) -> None:
    assert api.get(f"{one}{query}", headers=headers).body.count(b"\n") <= 1


@pytest.mark.parametrize(
    "accept",
    [JSON, "*/*", "", "text/html,application/xhtml+xml,*/*;q=0.8", f"{PROTOBUF};q=0,application/json"],
)
def test_json_is_accepted(api: KubeApi, one: str, accept: str) -> None:
    answer = api.get(one, headers={"Accept": accept})
    assert (answer.status, answer.headers["Content-Type"]) == (200, JSON)


def test_yaml_is_accepted(api: KubeApi, one: str) -> None:
    answer = api.get(one, headers={"Accept": "application/yaml"})
    assert answer.headers["Content-Type"] == "application/yaml"
    assert b"kind: ConfigMap\n" in answer.body


def test_refusals_come_in_the_form_that_is_accepted(api: KubeApi, config_maps: str) -> None:
    answer = api.get(f"{config_maps}/none", headers={"Accept": "application/yaml"})
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/yaml")
    assert b"reason: NotFound\n" in answer.body


@pytest.mark.parametrize("accept", ["text/html", "application/cbor", "application/json;as=Foo;g=meta.k8s.io;v=v1"])
def test_what_cannot_be_given(api: KubeApi, one: str, accept: str) -> None:
    answer = api.get(one, headers={"Accept": accept})
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


def test_the_first_form_that_can_be_given(api: KubeApi, one: str) -> None:
    accept = "application/json;as=Foo;g=meta.k8s.io;v=v1,application/json"
    assert api.get(one, headers={"Accept": accept}).json["kind"] == "ConfigMap"


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
def test_bodies_that_cannot_be_read(api: KubeApi, config_maps: str, kind: str) -> None:
    assert refusal(api.call("POST", config_maps, b"{}", content_type=kind)) == (
        415,
        "UnsupportedMediaType",
        (
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml, application/vnd.kubernetes.protobuf"
        ),
    )


@pytest.mark.parametrize("kind", ["application/yaml", "application/json; charset=utf-8", "application/json"])
def test_bodies_that_can_be_read(api: KubeApi, config_maps: str, kind: str) -> None:
    assert api.call("POST", config_maps, json.dumps(config_map()).encode(), content_type=kind).status == 201


def test_yaml_is_written(api: KubeApi, config_maps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  a: |\n    x\n    y\n"
    answer = api.call("POST", config_maps, body, content_type="application/yaml")
    assert (answer.status, answer.json["data"]) == (201, {"a": "x\ny\n"})


def test_garbage_in_protocol_buffers(api: KubeApi, config_maps: str) -> None:
    answer = api.call("POST", config_maps, b"k8s\x00garbage", content_type=PROTOBUF)
    assert (answer.status, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize("accepts", [True, False])
def test_long_answers_are_compressed(api: KubeApi, config_maps: str, *, accepts: bool) -> None:
    text = "some words that come again and again " * 10_000
    api.made(config_maps, config_map("large", data={"a": text}))
    headers = {"Accept-Encoding": "gzip"} if accepts else {"Accept-Encoding": "identity"}
    response = api.pool.request(
        "GET", f"{api.server}{config_maps}/large", headers=dict(api.headers) | headers, decode_content=False
    )
    assert response.headers.get("Content-Encoding") == ("gzip" if accepts else None)
    body = gzip.decompress(response.data) if accepts else response.data
    assert json.loads(body)["data"] == {"a": text}


def test_short_answers_are_not(api: KubeApi, one: str) -> None:
    assert "Content-Encoding" not in api.get(one, headers={"Accept-Encoding": "gzip"}).headers


def test_answers_are_not_kept(api: KubeApi, one: str) -> None:
    headers = api.get(one).headers
    assert headers["Cache-Control"] == "no-cache, private"
    assert headers["Audit-Id"]


SELECTORS: list[tuple[str, str]] = [
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("in (", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
    ("a=b!", "found '!', expected: ',' or 'end of string'"),
    ("a,", "found '', expected: identifier after ','"),
    (",a", "found ',', expected: !, identifier, or 'end of string'"),
    ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    (
        "a>x",
        (
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer"
        ),
    ),
]


@pytest.mark.parametrize(("selector", "message"), SELECTORS)
@pytest.mark.parametrize("watch", [False, True])
def test_label_selectors_that_are_none(
    api: KubeApi, config_maps: str, selector: str, message: str, *, watch: bool
) -> None:
    answer = api.get(config_maps, labelSelector=selector, **({"watch": True} if watch else {}))
    assert refusal(answer) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("foo", "invalid selector: 'foo'; can't understand 'foo'"),
        ("spec.x=1", '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
    ],
)
def test_field_selectors_that_are_none(api: KubeApi, config_maps: str, selector: str, message: str) -> None:
    assert refusal(api.get(config_maps, fieldSelector=selector)) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({"labelSelector": "n=1"}, "b"),
        ({"labelSelector": "n!=1"}, "ac"),
        ({"labelSelector": "n in (0,1)"}, "ab"),
        ({"labelSelector": "n notin (0)"}, "bc"),
        ({"labelSelector": "n in ()"}, ""),
        ({"labelSelector": "!n"}, "c"),
        ({"labelSelector": "n"}, "ab"),
        ({"labelSelector": "n>0"}, "b"),
        ({"labelSelector": "n<1"}, "a"),
        ({"labelSelector": "n="}, ""),
        ({"labelSelector": " n = 1 , all "}, "b"),
        ({"labelSelector": "in=x"}, "a"),
        ({"fieldSelector": "metadata.name=a"}, "a"),
        ({"fieldSelector": "metadata.name!=a"}, "bc"),
        ({"fieldSelector": "metadata.name=a,metadata.name=b"}, ""),
        ({"fieldSelector": "metadata.namespace=default"}, ""),
        ({"fieldSelector": "type=example.org/x"}, "c"),
        ({"labelSelector": "n=1", "fieldSelector": "metadata.name=a"}, ""),
    ],
)
def test_selectors(api: KubeApi, namespace: str, selector: dict[str, Any], found: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    api.made(path, secret("a", {"labels": {"n": "0", "all": "1", "in": "x"}}))
    api.made(path, secret("b", {"labels": {"n": "1", "all": "1"}}))
    api.made(path, secret("c", {"labels": {"all": "1"}}, type="example.org/x"))
    assert "".join(item["metadata"]["name"] for item in api.get(path, **selector).json["items"]) == found
