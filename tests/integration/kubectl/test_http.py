"""The wire: what clients other than kubectl send, and what they must get for it."""

from __future__ import annotations

import asyncio
import gzip
import io
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
import pytest

from ironbell.codec import goyaml
from support.api.cluster import Cluster
from support.api.widgets import WIDGETS, widget
from support.waiting import until

WIDGET_PATH = "/apis/test.ironbell.dev/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
OWN = "fieldSelector=metadata.name!%3Dkube-root-ca.crt"
"""Leaves out what every namespace has."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Any
    raw: bytes

    @property
    def value(self) -> Any:
        return msgspec.json.decode(self.raw)


@dataclass(frozen=True)
class Http:
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        raw = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        data = io.BytesIO(raw) if raw is not None else None
        sent = {"Content-Type": "application/json"} if data is not None else {}
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        async with self.session.request(method, f"http://api{path}", data=data, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, **headers)

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        return await self.send("POST", path, body, **headers)


@pytest.fixture
async def http(cluster: Cluster) -> AsyncIterator[Http]:
    token = cluster.running.tokens.issue("tester", ["system:masters"])
    connector = aiohttp.UnixConnector(str(cluster.running.unix_socket))
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False) as session:
        client = Http(session)
        made = await client.post(CRDS, goyaml.load(WIDGETS))
        assert made.status == 201
        yield client


def config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def reason(answer: Answer) -> tuple[int, str]:
    status = answer.value
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.status)
    return answer.status, status["reason"]


async def test_only_version_and_health_are_open(http: Http, cluster: Cluster) -> None:
    connector = aiohttp.UnixConnector(str(cluster.running.unix_socket))
    async with aiohttp.ClientSession(connector=connector) as session:
        anyone = Http(session)
        for path in ("/version", "/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz?verbose"):
            assert (await anyone.get(path)).status == 200
        for path in ("/", "/api", "/apis", "/metrics", "/openapi/v3", CONFIG_MAPS):
            answer = await anyone.get(path)
            assert reason(answer) == (401, "Unauthorized")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_unknown_paths_and_methods_are_statuses(http: Http) -> None:
    for path in ("/api/v1/nothing", "/api/v2", "/openapi/v3/apis/none/v1", "/api/v1/namespaces/default/nodes",
                 "/apis/test.ironbell.dev/v1/widgets/one"):  # fmt: skip
        assert reason(await http.get(path)) == (404, "NotFound"), path
    for path in ("/nothing", "/apis/none", "/apis/none/v1", "/readyz/none"):
        answer = await http.get(path)
        assert (answer.status, answer.raw) == (404, b"404 page not found\n"), path
    for method, path in (
        ("PUT", CONFIG_MAPS), ("PATCH", CONFIG_MAPS), ("POST", f"{CONFIG_MAPS}/c"), ("POST", "/version"),
        ("DELETE", "/api"), ("DELETE", f"{WIDGET_PATH}/one/status"),
    ):  # fmt: skip
        assert reason(await http.send(method, path)) == (405, "MethodNotAllowed"), (method, path)


async def test_malformed_bodies_are_bad_requests(http: Http) -> None:
    for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b'{"kind":"Other","apiVersion":"v1"}', b"{" * 5000):
        code, why = reason(await http.post(CONFIG_MAPS, body))
        assert (code, why) == (400, "BadRequest"), body[:20]
    for body in (b"a: [", b"\t", b"- 1"):
        answer = await http.post(CONFIG_MAPS, body, Content_Type="application/yaml")
        assert reason(answer) == (400, "BadRequest"), body


async def test_bodies_of_other_types_are_refused(http: Http) -> None:
    answer = await http.post(CONFIG_MAPS, b"", Content_Type="application/cbor")
    assert reason(answer) == (415, "UnsupportedMediaType")
    await http.post(CONFIG_MAPS, config_map())
    answer = await http.send("PATCH", f"{CONFIG_MAPS}/c", b"{}", Content_Type="application/json")
    assert reason(answer) == (415, "UnsupportedMediaType")


async def test_large_bodies_are_refused(http: Http) -> None:
    answer = await http.post(CONFIG_MAPS, config_map(a="x" * (3 * 1024 * 1024)))
    assert reason(answer) == (413, "RequestEntityTooLarge")


async def test_yaml_comes_and_goes(http: Http) -> None:
    made = await http.post(WIDGET_PATH, widget().encode(), Content_Type="application/yaml", Accept="application/yaml")
    assert made.status == 201
    assert made.headers["Content-Type"] == "application/yaml"
    assert goyaml.load(made.raw)["spec"]["colour"] == "red"
    listed = await http.get(WIDGET_PATH, Accept="application/yaml")
    assert goyaml.load(listed.raw)["kind"] == "WidgetList"


async def test_what_cannot_be_given_is_not_acceptable(http: Http) -> None:
    for path in (WIDGET_PATH, "/openapi/v2", "/openapi/v3/api/v1", "/version"):
        answer = await http.get(path, Accept="application/vnd.kubernetes.protobuf")
        assert answer.status == 406
    both = await http.get(WIDGET_PATH, Accept="application/vnd.kubernetes.protobuf,application/json")
    assert both.value["kind"] == "WidgetList"


async def test_tables_and_metadata(http: Http) -> None:
    await http.post(WIDGET_PATH, goyaml.load(widget()))
    one = (await http.get(f"{WIDGET_PATH}/one", Accept=TABLE)).value
    assert (one["kind"], one["apiVersion"], one["rows"][0]["cells"][:2]) == ("Table", "meta.k8s.io/v1", ["one", "red"])
    assert one["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    many = (await http.get(f"{WIDGET_PATH}?includeObject=None", Accept=TABLE)).value
    assert many["rows"][0]["object"] is None
    assert many["metadata"]["resourceVersion"]
    assert reason(await http.get(f"{WIDGET_PATH}?includeObject=Some", Accept=TABLE)) == (400, "BadRequest")
    partial = (await http.get(f"{WIDGET_PATH}/one", Accept=PARTIAL)).value
    assert set(partial) == {"kind", "apiVersion", "metadata"}
    listed = (await http.get(WIDGET_PATH, Accept=PARTIAL.replace("Metadata;", "MetadataList;"))).value
    assert (listed["kind"], len(listed["items"])) == ("PartialObjectMetadataList", 1)


async def test_pages(http: Http) -> None:
    for number in range(7):
        await http.post(CONFIG_MAPS, config_map(f"c{number}"))
    names: list[str] = []
    token, pages = "", 0
    while True:
        page = (await http.get(f"{CONFIG_MAPS}?{OWN}&limit=3&continue={token}")).value
        names += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [f"c{number}" for number in range(7)]
    assert pages == 3
    assert (await http.get(f"{CONFIG_MAPS}?limit=3&continue=nonsense")).status in {400, 410}


async def test_parameters_are_checked(http: Http) -> None:
    for query in ("limit=x", "labelSelector=%3D%3D%3D", "fieldSelector=spec.x%3D1", "watch=1&timeoutSeconds=x",
                  "resourceVersion=x"):  # fmt: skip
        assert reason(await http.get(f"{CONFIG_MAPS}?{query}")) == (400, "BadRequest"), query
    assert reason(await http.get(f"{CONFIG_MAPS}?resourceVersionMatch=Exact")) == (422, "Invalid")


async def test_large_answers_are_compressed_and_whole(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map(a="x" * 200_000))
    answer = await http.get(CONFIG_MAPS, Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.raw) < 20_000
    plain = await http.get(CONFIG_MAPS, Accept_Encoding="identity")
    assert "Content-Encoding" not in plain.headers
    assert msgspec.json.decode(gzip.decompress(answer.raw)) == plain.value


async def test_answers_larger_than_a_buffer_arrive_whole(http: Http) -> None:
    for name in ("a", "b", "c"):
        await http.post(CONFIG_MAPS, config_map(name, value=name * 900_000))
    answer = await http.get(f"{CONFIG_MAPS}?{OWN}", Accept_Encoding="identity")
    assert int(answer.headers["Content-Length"]) == len(answer.raw) > 2_700_000
    assert answer.headers["Audit-Id"]
    assert [item["data"]["value"][:2] for item in answer.value["items"]] == ["aa", "bb", "cc"]


async def test_pretty_answers(http: Http) -> None:
    assert b'\n  "kind"' in (await http.get("/api?pretty=true")).raw
    assert (await http.get("/api")).raw.count(b"\n") <= 1
    assert (await http.get("/api", User_Agent="curl/8")).raw.count(b"\n") > 1


async def test_discovery_in_both_forms(http: Http) -> None:
    groups = (await http.get("/apis")).value
    assert "test.ironbell.dev" in {group["name"] for group in groups["groups"]}
    one = (await http.get("/apis/test.ironbell.dev")).value
    assert one["preferredVersion"]["version"] == "v1"
    names = {one["name"] for one in (await http.get("/apis/test.ironbell.dev/v1")).value["resources"]}
    assert {"widgets", "widgets/status", "widgets/scale"} <= names
    aggregated = await http.get("/apis", Accept=DISCOVERY + ",application/json")
    assert aggregated.headers["Content-Type"] == DISCOVERY
    assert aggregated.value["kind"] == "APIGroupDiscoveryList"
    again = await http.get("/apis", Accept=DISCOVERY, If_None_Match=aggregated.headers["ETag"])
    assert (again.status, again.raw) == (304, b"")
    core = (await http.get("/api", Accept=DISCOVERY)).value
    assert core["items"][0]["versions"][0]["version"] == "v1"
    assert "/apis/test.ironbell.dev/v1" in (await http.get("/")).value["paths"]


async def test_openapi_can_be_kept_by_its_hash(http: Http) -> None:
    address = (await http.get("/openapi/v3")).value["paths"]["apis/test.ironbell.dev/v1"]["serverRelativeURL"]
    document = await http.get(address)
    assert "immutable" in document.headers["Cache-Control"] or "max-age" in document.headers["Cache-Control"]
    assert (await http.get(address, If_None_Match=document.headers["ETag"])).status == 304
    assert "test.ironbell.dev.v1.Widget" not in document.value["components"]["schemas"]
    assert "dev.ironbell.test.v1.Widget" in document.value["components"]["schemas"]
    assert (await http.get("/openapi/v2", Accept_Encoding="identity")).value["swagger"] == "2.0"


async def events(http: Http, path: str, count: int, **headers: str) -> list[dict[str, Any]]:
    """The first events of a watch."""
    found: list[dict[str, Any]] = []
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    async with asyncio.timeout(20), http.session.get(f"http://api{path}", headers=sent) as response:
        assert response.status == 200, await response.read()
        while len(found) < count:
            found.append(msgspec.json.decode(await response.content.readline()))
    return found


async def test_watches_of_each_representation(http: Http) -> None:
    version = (await http.get(WIDGET_PATH)).value["metadata"]["resourceVersion"]
    await http.post(WIDGET_PATH, goyaml.load(widget()))
    await http.post(WIDGET_PATH, goyaml.load(widget("two")))
    path = f"{WIDGET_PATH}?watch=1&resourceVersion={version}"
    plain = await events(http, path, 2)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in plain] == [
        ("ADDED", "one"), ("ADDED", "two"),
    ]  # fmt: skip
    tables = await events(http, path, 2, Accept=TABLE)
    assert [bool(event["object"]["columnDefinitions"]) for event in tables] == [True, False]
    assert tables[1]["object"]["rows"][0]["cells"][0] == "two"
    partial = await events(http, path, 1, Accept=PARTIAL)
    assert partial[0]["object"]["kind"] == "PartialObjectMetadata"
    named = f"fieldSelector=metadata.name%3Dtwo&watch=1&resourceVersion={version}"
    single = await events(http, f"{WIDGET_PATH}?{named}", 1)
    assert single[0]["object"]["metadata"]["name"] == "two"


async def test_a_watch_can_begin_with_what_is_there(http: Http) -> None:
    await http.post(WIDGET_PATH, goyaml.load(widget()))
    assert (await events(http, f"{WIDGET_PATH}?watch=1", 1))[0]["type"] == "ADDED"
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    first, mark = await events(http, f"{WIDGET_PATH}?{query}", 2)
    assert first["object"]["metadata"]["name"] == "one"
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "Widget"
    annotations = mark["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0


async def test_a_watch_answers_before_anything_happens_and_ends_in_time(http: Http) -> None:
    async with (
        asyncio.timeout(10),
        http.session.get(f"http://api{CONFIG_MAPS}?{OWN}&watch=1&timeoutSeconds=1") as response,
    ):
        assert response.status == 200
        assert response.headers["Transfer-Encoding"] == "chunked"
        assert await response.read() == b""


async def test_a_watch_that_is_refused_says_so(http: Http) -> None:
    answer = await http.get(f"{CONFIG_MAPS}?watch=1&labelSelector=%3D%3D")
    assert reason(answer) == (400, "BadRequest")
    refused = await http.get(f"{CONFIG_MAPS}?watch=1", Accept="application/yaml")
    assert (refused.status, goyaml.load(refused.raw)["reason"]) == (406, "NotAcceptable")


async def test_clients_that_leave_are_forgotten(http: Http) -> None:
    response = await http.session.get(f"http://api{CONFIG_MAPS}?watch=1")
    response.close()

    async def is_forgotten() -> bool:
        return b"apiserver_longrunning_requests 0.0" in (await http.get("/metrics")).raw

    await until(is_forgotten)


async def test_deletes_carry_preconditions(http: Http) -> None:
    uid = (await http.post(CONFIG_MAPS, config_map())).value["metadata"]["uid"]
    wrong = await http.send("DELETE", f"{CONFIG_MAPS}/c", {"preconditions": {"uid": "other"}})
    assert reason(wrong) == (409, "Conflict")
    dry = await http.send("DELETE", f"{CONFIG_MAPS}/c?dryRun=All")
    assert dry.status == 200
    right = await http.send("DELETE", f"{CONFIG_MAPS}/c", {"preconditions": {"uid": uid}})
    assert right.status == 200
    assert reason(await http.send("DELETE", f"{CONFIG_MAPS}/c")) == (404, "NotFound")


async def test_collections_are_deleted_by_selector(http: Http) -> None:
    for name in ("a", "b"):
        body = config_map(name)
        body["metadata"]["labels"] = {"name": name}
        await http.post(CONFIG_MAPS, body)
    deleted = (await http.send("DELETE", f"{CONFIG_MAPS}?labelSelector=name%3Da")).value
    assert [item["metadata"]["name"] for item in deleted["items"]] == ["a"]
    left = (await http.get(f"{CONFIG_MAPS}?{OWN}")).value["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


async def test_apply_takes_yaml(http: Http) -> None:
    path = f"{WIDGET_PATH}/one?fieldManager=tester"
    made = await http.send("PATCH", path, widget().encode(), Content_Type="application/apply-patch+yaml")
    assert made.status in {200, 201}, made.raw
    assert made.value["spec"]["colour"] == "red"
    broken = await http.send("PATCH", path, b"a: [", Content_Type="application/apply-patch+yaml")
    assert reason(broken) == (400, "BadRequest")


async def test_warnings_of_unknown_fields(http: Http) -> None:
    body = goyaml.load(widget(shade="dark"))
    warned = await http.post(f"{WIDGET_PATH}?fieldValidation=Warn", body)
    assert warned.status == 201
    assert 'unknown field \\"spec.shade\\"' in warned.headers["Warning"]


async def test_reviews(http: Http) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}}
    assert (await http.post(path, asked)).value["status"] == {"allowed": True}
    assert reason(await http.post(path, b"[]")) == (400, "BadRequest")
    assert reason(await http.post(path, {"spec": {"resourceAttributes": 5}})) == (400, "BadRequest")
    assert reason(await http.get(path)) == (405, "MethodNotAllowed")


async def test_each_answer_has_an_audit_id(http: Http) -> None:
    first, second = await http.get(CONFIG_MAPS), await http.get("/nothing")
    assert first.headers["Audit-Id"] != second.headers["Audit-Id"]


async def test_plain_text_on_the_tls_port_harms_nobody(cluster: Cluster, http: Http) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", cluster.port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        await reader.read()
    writer.close()
    assert (await http.get("/readyz")).status == 200


async def test_a_certificate_of_another_authority_is_refused(cluster: Cluster, tmp_path: Any) -> None:
    from ironbell.apiserver.access.pki import Authority
    from ironbell.base.clock import SystemClock

    foreign = await asyncio.to_thread(Authority(tmp_path / "foreign", SystemClock()).client, "x", ["system:masters"])
    context = ssl.create_default_context(cadata=cluster.running.authority.certificate_pem.decode())
    context.load_cert_chain(foreign.certificate, foreign.key)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.get(f"{cluster.running.url}/api") as response:
                await response.read()


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /api/v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET //api HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/../../x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"BREW /api HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
    ],
)
async def test_odd_requests_get_an_error_and_no_traceback(cluster: Cluster, raw: bytes) -> None:
    assert cluster.running.unix_socket is not None
    reader, writer = await asyncio.open_unix_connection(str(cluster.running.unix_socket))
    writer.write(raw)
    async with asyncio.timeout(10):
        answered = await reader.readline()
        assert answered.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answered
    writer.close()
