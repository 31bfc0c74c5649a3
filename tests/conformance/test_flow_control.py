"""FlowSchemas and PriorityLevelConfigurations: which are there, which are refused, and what becomes of requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from ironbell.apiserver.flowcontrol import suggested
from support.api.kubeapi import TIMEOUT_S, Answer, KubeApi
from support.api.kubeobjects import config_map
from support.api.recorded import Case, ask, each
from support.api.webhookserver import WebhookServer, allow, webhook_server
from support.waiting import eventually

GROUP = "flowcontrol.apiserver.k8s.io"
API_VERSION = f"{GROUP}/v1"
SCHEMAS = f"/apis/{API_VERSION}/flowschemas"
LEVELS = f"/apis/{API_VERSION}/prioritylevelconfigurations"
EVERYTHING: dict[str, Any] = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ASKED = "/apis"
"""What everybody may ask for."""

Make = Callable[..., dict[str, Any]]


def user(name: str) -> dict[str, Any]:
    return {"kind": "User", "user": {"name": name}}


def schema(name: str, level: str, *subjects: dict[str, Any], **spec: Any) -> dict[str, Any]:
    given = {
        "priorityLevelConfiguration": {"name": level}, "rules": [{"subjects": list(subjects), **EVERYTHING}], **spec,
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "FlowSchema", "metadata": {"name": name}, "spec": given}


def level(name: str, response: dict[str, Any] | None = None, **limited: Any) -> dict[str, Any]:
    spec = {"type": "Limited", "limited": {"limitResponse": response or {"type": "Reject"}, **limited}}
    return {"apiVersion": API_VERSION, "kind": "PriorityLevelConfiguration", "metadata": {"name": name}, "spec": spec}


def queue(queues: int, hand: int, length: int) -> dict[str, Any]:
    return {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": length}}


JAIL: dict[str, Any] = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0}
"""A level that has no seats, and gets none from others."""


@pytest.fixture
def make(api: KubeApi, namespace: str) -> Iterator[Make]:
    """Makes schemas and levels, whose names begin as the test's namespace does, and removes them."""
    made: list[str] = []

    def put(value: dict[str, Any]) -> dict[str, Any]:
        place = SCHEMAS if value["kind"] == "FlowSchema" else LEVELS
        found = api.made(place, value)
        made.append(f"{place}/{value['metadata']['name']}")
        return found

    yield put
    for path in made:
        api.delete(path)


def uids(answer: Answer) -> tuple[str | None, str | None]:
    """The schema and the level that an answer names."""
    headers = answer.headers
    return headers.get("X-Kubernetes-PF-FlowSchema-UID"), headers.get("X-Kubernetes-PF-PriorityLevel-UID")


def uids_of(api: KubeApi, schema: str, level: str) -> tuple[str, str]:
    """What answers say of requests of this schema and level."""
    found = (api.get(path).json["metadata"]["uid"] for path in (f"{SCHEMAS}/{schema}", f"{LEVELS}/{level}"))
    return next(found), next(found)


def is_named(asking: KubeApi, expected: tuple[str, str]) -> bool:
    return uids(asking.get(ASKED)) == expected


def dangling(api: KubeApi, name: str) -> dict[str, Any] | None:
    conditions = api.get(f"{SCHEMAS}/{name}").json.get("status", {}).get("conditions", [])
    return next(({**one, "lastTransitionTime": ""} for one in conditions if one["type"] == "Dangling"), None)


@pytest.mark.parametrize(
    ("path", "expected"), [(SCHEMAS, suggested.SCHEMAS), (LEVELS, suggested.LEVELS)], ids=["schemas", "levels"]
)
def test_a_server_begins_with_some(api: KubeApi, path: str, expected: dict[str, Any]) -> None:
    found = {item["metadata"]["name"]: item for item in api.get(path).json["items"]}
    assert expected.keys() <= found.keys()
    assert not [name for name in found.keys() - expected.keys() if not name.startswith(("test-", "e2e-"))]
    for name, wanted in expected.items():
        meta = found[name]["metadata"]
        assert found[name]["spec"] == wanted["spec"], name
        assert (meta["annotations"], meta["generation"]) == (wanted["metadata"]["annotations"], 1)


def test_managers_of_what_a_server_begins_with(api: KubeApi) -> None:
    def managers() -> list[dict[str, Any]]:
        fields: list[dict[str, Any]] = api.get(f"{SCHEMAS}/global-default").json["metadata"]["managedFields"]
        return fields if len(fields) == 2 else []

    found = eventually(managers)
    shown = [(one["manager"], one["operation"], one.get("subresource")) for one in found]
    assert sorted(shown, key=str) == [
        ("api-priority-and-fairness-config-consumer-v1", "Apply", "status"),
        ("api-priority-and-fairness-config-producer-v1", "Update", None),
    ]


def test_what_is_filled_in(api: KubeApi, make: Make, namespace: str) -> None:
    found = make(schema(namespace, "exempt", user("ann")))
    assert found["spec"]["matchingPrecedence"] == 1000
    assert "distinguisherMethod" not in found["spec"]
    found = make(level(namespace, {"type": "Queue", "queuing": {}}))
    assert found["spec"]["limited"] == {
        "nominalConcurrencyShares": 30, "lendablePercent": 0, "limitResponse": queue(64, 8, 50),
    }  # fmt: skip
    assert (found["metadata"]["generation"], found["status"]) == (1, {})


@each("flow_control_faults")
def test_fault(api: KubeApi, case: Case) -> None:
    ask(api, case)


@pytest.mark.parametrize("path", ["/version", "/apis", "/healthz", "/api/v1/namespaces/default/pods", "/nowhere"])
@pytest.mark.parametrize(
    ("name", "group", "schema", "level"),
    [
        ("", "", "exempt", "exempt"),
        ("ann", "", "global-default", "global-default"),
        ("system:serviceaccount:default:default", "", "service-accounts", "workload-low"),
        ("system:serviceaccount:kube-system:a", "", "kube-system-service-accounts", "workload-high"),
        ("system:kube-controller-manager", "", "kube-controller-manager", "workload-high"),
        ("system:node:n1", "system:nodes", "system-nodes", "system"),
    ],
)
def test_answers_name_schema_and_level(api: KubeApi, path: str, name: str, group: str, schema: str, level: str) -> None:
    asking = api.with_headers(Impersonate_User=name) if name else api
    headers = {"Impersonate-Group": group} if group else {}
    if path == "/healthz" and name:
        schema, level = "probes", "exempt"
    expected = uids_of(api, schema, level)
    assert uids(asking.get(path, headers=headers)) == expected


@pytest.mark.parametrize(
    ("path", "schema", "level"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases/a", "system-leader-election", "leader-election"),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "kube-scheduler", "workload-high"),
    ],
)
def test_resources_and_verbs_count(api: KubeApi, path: str, schema: str, level: str) -> None:
    answer = api.with_headers(Impersonate_User="system:kube-scheduler").get(path)
    assert uids(answer) == uids_of(api, schema, level)


def test_namespaces_count(api: KubeApi, make: Make, namespace: str) -> None:
    rule = {**EVERYTHING["resourceRules"][0], "namespaces": [namespace], "clusterScope": False}
    value = schema(namespace, "catch-all", user(namespace), matchingPrecedence=900)
    value["spec"]["rules"][0] = {"subjects": [user(namespace)], "resourceRules": [rule]}
    make(value)
    asking, expected = api.with_headers(Impersonate_User=namespace), uids_of(api, namespace, "catch-all")
    eventually(lambda: uids(asking.get(f"/api/v1/namespaces/{namespace}/pods")) == expected)
    assert uids(asking.get(f"/api/v1/namespaces/{namespace}")) == expected
    others = uids_of(api, "global-default", "global-default")
    for path in ("/api/v1/pods", "/api/v1/namespaces/default/pods", "/api/v1/namespaces", "/api/v1/nodes/a", "/apis"):
        assert uids(asking.get(path)) == others, path


def test_of_several_schemas_the_one_with_the_lowest_precedence_counts(api: KubeApi, make: Make, namespace: str) -> None:
    asking = api.with_headers(Impersonate_User=namespace)
    for letter, precedence in (("c", 900), ("b", 800), ("a", 800)):
        name = f"{namespace}-{letter}"
        make(schema(name, "catch-all", user(namespace), matchingPrecedence=precedence))
        expected = uids_of(api, name, "catch-all")
        eventually(partial(is_named, asking, expected))


def test_a_schema_without_its_level_says_so_and_is_passed_over(api: KubeApi, make: Make, namespace: str) -> None:
    make(schema(namespace, namespace, user(namespace)))
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{namespace}"'
    missing = {
        "type": "Dangling", "status": "True", "reason": "NotFound", "lastTransitionTime": "",
        "message": f"{what} but there is no such object",
    }  # fmt: skip
    found = {**missing, "status": "False", "reason": "Found", "message": f"{what} and it exists"}
    asking = api.with_headers(Impersonate_User=namespace)
    eventually(lambda: dangling(api, namespace) == missing)
    assert uids(asking.get(ASKED)) == uids_of(api, "global-default", "global-default")
    make(level(namespace))
    eventually(lambda: dangling(api, namespace) == found)
    eventually(lambda: uids(asking.get(ASKED)) == uids_of(api, namespace, namespace))


def test_a_table_tells_them_in_their_order(api: KubeApi) -> None:
    table = api.get(SCHEMAS, headers={"Accept": TABLE}).json
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL",
    ]  # fmt: skip
    rows = [row["cells"] for row in table["rows"] if not row["cells"][0].startswith(("test-", "e2e-"))]
    assert [row[0] for row in rows][:3] == ["exempt", "probes", "system-leader-election"]
    assert rows == sorted(rows, key=lambda row: (row[2], row[0]))
    assert [*rows[2][:4], rows[2][5]] == ["system-leader-election", "leader-election", 100, "ByUser", "False"]
    table = api.get(LEVELS, headers={"Accept": TABLE}).json
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age",
    ]  # fmt: skip
    shown = {row["cells"][0]: row["cells"][1:-1] for row in table["rows"]}
    assert shown["exempt"] == ["Exempt", *["<none>"] * 4]
    assert shown["system"] == ["Limited", 30, 64, 6, 50]
    assert shown["catch-all"] == ["Limited", 5, *["<none>"] * 3]


@pytest.fixture(scope="module")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path_factory.mktemp("webhook")) as server:
        yield server


@pytest.fixture
def hold(api: KubeApi, webhooks: WebhookServer, namespace: str) -> Iterator[threading.Event]:
    """Who creates a ConfigMap in the test's namespace waits until this is set, or if it has the label `passes`."""
    released = threading.Event()

    def answer(request: dict[str, Any]) -> Any:
        if "labels" not in request["request"]["object"]["metadata"]:
            released.wait(TIMEOUT_S)
        return allow(request)

    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "hold.example.org", "clientConfig": webhooks.on(f"/{namespace}", answer), "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }  # fmt: skip
    place = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    kind = "ValidatingWebhookConfiguration"
    value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": namespace}}
    api.made(place, {**value, "webhooks": [webhook]})
    config_maps = f"/api/v1/namespaces/{namespace}/configmaps"
    probe = {**config_map("probe"), "metadata": {"name": "probe", "labels": {"passes": ""}}}
    eventually(lambda: api.post(config_maps, probe, dryRun="All").status == 201 and f"/{namespace}" in webhooks.asked)
    yield released
    released.set()
    api.delete(f"{place}/{namespace}")


def test_a_level_without_shares_lets_one_in_and_refuses_others(
    api: KubeApi, make: Make, hold: threading.Event, webhooks: WebhookServer, namespace: str
) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": namespace}],
    }  # fmt: skip
    api.made(f"/apis/{group}/v1/namespaces/{namespace}/rolebindings", binding)
    make(level(namespace, **JAIL))
    make(schema(namespace, namespace, user(namespace)))
    asking, expected = api.with_headers(Impersonate_User=namespace), uids_of(api, namespace, namespace)
    config_maps, asked = f"/api/v1/namespaces/{namespace}/configmaps", webhooks.asked[f"/{namespace}"]
    passing = {**config_map("b"), "metadata": {"name": "b", "labels": {"passes": ""}}}
    eventually(
        lambda: (found := asking.post(config_maps, passing, dryRun="All")).status == 201 and uids(found) == expected
    )
    before = len(asked)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(asking.post, config_maps, config_map("a"))
        eventually(lambda: len(asked) > before)
        refused = asking.post(config_maps, passing)
        assert (refused.status, refused.headers["Retry-After"], uids(refused)) == (429, "1", expected)
        assert api.post(config_maps, passing, dryRun="All").status == 201, "an exempt one"
        hold.set()
        assert first.result().status == 201
    assert eventually(lambda: asking.post(config_maps, passing).status == 201)


def test_a_queue_holds_so_many_until_there_are_seats(api: KubeApi, make: Make, namespace: str) -> None:
    make(level(namespace, queue(1, 1, 2), **JAIL))
    make(schema(namespace, namespace, user(namespace)))
    asking = api.with_headers(Impersonate_User=namespace)
    eventually(lambda: dangling(api, namespace) is not None)
    with ThreadPoolExecutor(3) as threads:
        asked: list[Future[Answer]] = [threads.submit(asking.get, ASKED) for _ in range(3)]
        # two wait, and the third is refused
        eventually(lambda: any(one.done() for one in asked))
        assert [one.result().status for one in asked if one.done()] == [429]
        api.patch(f"{LEVELS}/{namespace}", {"spec": {"limited": {"nominalConcurrencyShares": 10}}})
        assert sorted(one.result().status for one in asked) == [200, 200, 429]
