"""Webhooks: which are asked, where their Services are, and what is kept of conversions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import pytest

from ironbell.api.client import ApiError
from ironbell.apiserver.access.identity import ADMIN
from ironbell.apiserver.admission import AdmissionRequest, Operation
from ironbell.apiserver.resources import ResourceInfo
from ironbell.apiserver.schema.compiled import plain_shape
from ironbell.apiserver.store.entry import Entry
from ironbell.apiserver.store.log import MemoryLog
from ironbell.apiserver.store.store import Store
from ironbell.apiserver.webhooks import conversion
from ironbell.apiserver.webhooks.client import CallError, WebhookClient
from ironbell.apiserver.webhooks.configuration import ClientConfig, ServiceReference, Webhook, WebhookSpec
from ironbell.apiserver.webhooks.conversion import ConversionConfig, WebhookConverter
from ironbell.apiserver.webhooks.matching import invocation, may_match
from ironbell.apiserver.webhooks.services import UnreachableError, resolve
from ironbell.base.randomness import SeededRandomness

SHAPE = plain_shape({"type": "object"})
SERVICE = ServiceReference("ns", "hook")


def info(group: str, version: str, plural: str, *, namespaced: bool = True) -> ResourceInfo:
    return ResourceInfo(group, version, plural, plural.title(), namespaced=namespaced, shape=SHAPE)


PODS, NODES = info("", "v1", "pods"), info("", "v1", "nodes", namespaced=False)
NAMESPACES = info("", "v1", "namespaces", namespaced=False)
OLD, NEW = info("x.org", "v1", "things"), info("x.org", "v2", "things")


def hook(*, resources: Sequence[str] = ("pods",), group: str = "", **more: Any) -> Webhook:
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": resources}
    rule |= more.pop("rule", {})
    spec = {"name": "a.b.c", "clientConfig": {"url": "https://x"}, "rules": [rule], **more}
    return Webhook("configuration", msgspec.convert(spec, WebhookSpec))


def create(of: ResourceInfo, *, subresource: str = "", labels: dict[str, str] | None = None) -> AdmissionRequest:
    new = {"metadata": {"name": "n", "labels": labels or {}}}
    namespace = "ns" if of.namespaced else ""
    return AdmissionRequest(Operation.CREATE, of, namespace, "n", ADMIN, new, subresource=subresource)


def labels_of(_: str) -> Mapping[str, str]:
    return {"team": "a"}


CASES: list[tuple[Webhook, AdmissionRequest, bool]] = [
    (hook(), create(PODS), True),
    (hook(), create(NODES), False),
    (hook(resources=["*"]), create(NODES), True),
    (hook(), create(PODS, subresource="status"), False),
    (hook(resources=["*"]), create(PODS, subresource="status"), False),
    (hook(resources=["*/*"]), create(PODS, subresource="status"), True),
    (hook(resources=["*/*"]), create(PODS), True),
    (hook(resources=["pods/*"]), create(PODS, subresource="status"), True),
    (hook(resources=["*/status"]), create(PODS, subresource="status"), True),
    (hook(resources=["*/status"]), create(PODS), False),
    (hook(rule={"operations": ["UPDATE"]}), create(PODS), False),
    (hook(rule={"operations": ["*"]}), create(PODS), True),
    (hook(rule={"apiGroups": ["*"], "apiVersions": ["*"]}), create(PODS), True),
    (hook(rule={"scope": "Cluster"}), create(PODS), False),
    (hook(resources=["*"], rule={"scope": "Cluster"}), create(NODES), True),
    (hook(resources=["*"], rule={"scope": "Namespaced"}), create(NODES), False),
    (hook(namespaceSelector={"matchLabels": {"team": "a"}}), create(PODS), True),
    (hook(namespaceSelector={"matchLabels": {"team": "b"}}), create(PODS), False),
    (hook(resources=["*"], namespaceSelector={"matchLabels": {"team": "b"}}), create(NODES), True),
    (hook(resources=["*"], namespaceSelector={"matchLabels": {"a": "b"}}), create(NAMESPACES, labels={"a": "b"}), True),
    (hook(resources=["*"], namespaceSelector={"matchLabels": {"a": "b"}}), create(NAMESPACES), False),
    (hook(objectSelector={"matchLabels": {"a": "b"}}), create(PODS, labels={"a": "b"}), True),
    (hook(objectSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}), create(PODS), False),
]


@pytest.mark.parametrize(("webhook", "request_", "asked"), CASES)
def test_which_webhooks_are_asked(webhook: Webhook, request_: AdmissionRequest, asked: bool) -> None:
    result = invocation(webhook, request_, [request_.info], labels_of=labels_of)
    assert (result is not None) is asked


def test_another_version_is_asked_about_in_the_version_of_the_rule() -> None:
    webhook = hook(resources=["things"], group="x.org")
    result = invocation(webhook, create(NEW), [OLD, NEW], labels_of=labels_of)
    assert result is not None
    assert result.info is OLD
    exact = hook(resources=["things"], group="x.org", matchPolicy="Exact")
    assert invocation(exact, create(NEW), [OLD, NEW], labels_of=labels_of) is None


def test_resources_that_no_webhook_names_cost_nothing() -> None:
    assert not may_match([hook(group="x.org")], [PODS])
    assert may_match([hook()], [PODS])


def put(store: Store, resource: str, name: str, value: dict[str, Any], labels: dict[str, str] | None = None) -> None:
    entry = Entry(resource, ("ns", name), 1, "u", msgspec.json.encode(value), labels)
    store.objects(resource).put(entry)


@pytest.fixture
def store() -> Store:
    return Store(MemoryLog())


def where(store: Store, *, port: int = 443) -> tuple[str, int]:
    return resolve(store, ServiceReference("ns", "hook", "", port), SeededRandomness(1))


def service(store: Store, **spec: Any) -> None:
    ports = [{"name": "https", "port": 443}, {"name": "other", "port": 8443}]
    put(store, "services", "hook", {"spec": {"ports": ports, "selector": {"a": "b"}, **spec}})


def test_a_service_answers_at_a_ready_endpoint(store: Store) -> None:
    service(store, clusterIP="10.0.0.1")
    endpoints = [
        {"addresses": ["192.0.2.1"], "conditions": {"ready": False}},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": True}},
    ]
    ports = [{"name": "https", "port": 9443}]
    labels = {"kubernetes.io/service-name": "hook"}
    put(store, "endpointslices.discovery.k8s.io", "hook-1", {"endpoints": endpoints, "ports": ports}, labels)
    assert where(store) == ("192.0.2.2", 9443)


def test_old_endpoints_do_as_well(store: Store) -> None:
    service(store)
    subsets = [{"addresses": [{"ip": "192.0.2.3"}], "ports": [{"name": "https", "port": 9444}]}]
    put(store, "endpoints", "hook", {"subsets": subsets})
    assert where(store) == ("192.0.2.3", 9444)


def test_a_service_of_another_name_answers_there(store: Store) -> None:
    service(store, type="ExternalName", externalName="hook.example.org")
    assert where(store) == ("hook.example.org", 443)


def test_a_service_without_selector_may_have_an_address(store: Store) -> None:
    service(store, clusterIP="192.0.2.9", selector=None)
    assert where(store, port=8443) == ("192.0.2.9", 8443)


def test_services_that_cannot_be_reached(store: Store) -> None:
    with pytest.raises(UnreachableError, match='service "hook" not found'):
        where(store)
    service(store, clusterIP="10.0.0.1")
    with pytest.raises(UnreachableError, match='no endpoints available for service "hook"'):
        where(store)
    with pytest.raises(UnreachableError, match="no service port 1 found"):
        where(store, port=1)


class Converting:
    """Stands for the client: gives every object the wanted version."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def call(self, where: ClientConfig, body: Any, *, seconds: int) -> Any:
        request = body["request"]
        self.calls.append(len(request["objects"]))
        objects = [{**value, "apiVersion": request["desiredAPIVersion"]} for value in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        return {"kind": body["kind"], "apiVersion": body["apiVersion"], "response": response}


@pytest.fixture
def client() -> Converting:
    return Converting()


@pytest.fixture
def converter(client: Converting) -> WebhookConverter:
    config = ConversionConfig(ClientConfig("https://x"), ("v1",))
    return WebhookConverter(cast(WebhookClient, client), config, SeededRandomness(1))


def things(count: int, *, size: int = 0) -> list[Entry]:
    return [
        Entry("things.x.org", ("ns", f"t{number}"), number + 1, f"u{number}", msgspec.json.encode(thing(number, size)))
        for number in range(count)
    ]


def thing(number: int, size: int = 0) -> dict[str, Any]:
    meta = {"name": f"t{number}", "uid": f"u{number}", "namespace": "ns"}
    return {"apiVersion": "x.org/v1", "kind": "Thing", "metadata": meta, "data": "x" * size}


async def test_a_list_is_converted_in_few_calls_and_once(converter: WebhookConverter, client: Converting) -> None:
    entries = things(2500)
    bodies = await converter.bodies(entries, "x.org/v2")
    assert [msgspec.json.decode(body)["metadata"]["name"] for body in bodies] == [entry.name for entry in entries]
    assert client.calls == [1000, 1000, 500]
    assert await converter.bodies(entries, "x.org/v2") == bodies
    assert len(client.calls) == 3
    changed = Entry("things.x.org", ("ns", "t1"), 9999, "u1", entries[1].body)
    await converter.bodies([entries[0], changed, entries[2]], "x.org/v2")
    assert client.calls[3:] == [1]


async def test_large_objects_go_in_smaller_calls(converter: WebhookConverter, client: Converting) -> None:
    await converter.bodies(things(20, size=1 << 20), "x.org/v2")
    assert len(client.calls) == 3


async def test_what_is_kept_is_bounded(
    converter: WebhookConverter, client: Converting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "CACHE_BYTES", 10_000)
    entries = things(20, size=1000)
    first = await converter.bodies(entries, "x.org/v2")
    assert await converter.bodies(entries, "x.org/v2") == first
    assert 0 < sum(client.calls[1:]) < 20


async def test_a_webhook_that_cannot_be_reached_is_told(converter: WebhookConverter, client: Converting) -> None:
    async def fail(where: ClientConfig, body: Any, *, seconds: int) -> Any:
        raise CallError("no route")

    client.call = fail  # type: ignore[method-assign]
    with pytest.raises(ApiError, match=r"conversion webhook for x\.org/v1, Kind=Thing failed: no route") as raised:
        await converter.convert(thing(1), "x.org/v2")
    assert (raised.value.code, raised.value.reason) == (500, "")
