"""Replacing objects, and parts of them through subresources."""

from __future__ import annotations

from typing import Any

import pytest

from support.api.kubeapi import STRATEGIC, KubeApi
from support.api.kubeobjects import config_map, refusal, thing
from support.waiting import eventually

MODIFIED = (
    'Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to the '
    "latest version and try again"
)


@pytest.fixture
def one(api: KubeApi, config_maps: str) -> str:
    api.made(config_maps, config_map(data={"a": "1"}))
    return f"{config_maps}/one"


def test_replacing_takes_away_what_is_not_said(api: KubeApi, one: str) -> None:
    api.patch(one, {"metadata": {"labels": {"a": "b"}}})
    after = api.put(one, config_map(data={"b": "2"})).json
    assert after["data"] == {"b": "2"}
    assert "labels" not in after["metadata"]


@pytest.mark.parametrize("version", [None, "", "0"])
def test_without_a_version_the_last_writer_wins(api: KubeApi, one: str, version: str | None) -> None:
    answer = api.put(one, config_map(meta={} if version is None else {"resourceVersion": version}, data={"c": "3"}))
    assert (answer.status, answer.json["data"]) == (200, {"c": "3"})


def test_writing_the_same_makes_no_version(api: KubeApi, one: str) -> None:
    before = api.get(one).json
    assert api.put(one, before).json["metadata"] == before["metadata"]
    assert api.patch(one, {"data": {"a": "1"}}).json["metadata"] == before["metadata"]


def test_an_old_version_conflicts(api: KubeApi, one: str) -> None:
    assert refusal(api.put(one, config_map(meta={"resourceVersion": "1"}))) == (409, "Conflict", MODIFIED)
    assert refusal(api.patch(one, {"metadata": {"resourceVersion": "1"}})) == (409, "Conflict", MODIFIED)


@pytest.mark.differs("A malformed request is the client's fault")
def test_a_version_that_is_no_number(api: KubeApi, one: str) -> None:
    assert api.put(one, config_map(meta={"resourceVersion": "abc"})).status == 500


def test_a_uid_is_a_precondition(api: KubeApi, one: str) -> None:
    uid = api.get(one).json["metadata"]["uid"]
    assert api.put(one, config_map(meta={"uid": uid})).status == 200
    answer = api.put(one, config_map(meta={"uid": "123"}))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith(f"Precondition failed: UID in precondition: 123, UID in object meta: {uid}")


def test_a_patch_does_not_change_the_uid(api: KubeApi, one: str) -> None:
    assert refusal(api.patch(one, {"metadata": {"uid": "1"}})) == (
        422,
        "Invalid",
        'ConfigMap "one" is invalid: metadata.uid: Invalid value: "1": field is immutable',
    )


@pytest.mark.parametrize("verb", ["put", "patch"])
def test_the_name_is_that_of_the_path(api: KubeApi, one: str, verb: str) -> None:
    answer = api.put(one, config_map("two")) if verb == "put" else api.patch(one, {"metadata": {"name": "two"}})
    assert refusal(answer) == (
        400,
        "BadRequest",
        "the name of the object (two) does not match the name on the URL (one)",
    )


@pytest.mark.parametrize("verb", ["put", "patch"])
def test_the_namespace_is_that_of_the_path(api: KubeApi, one: str, verb: str) -> None:
    meta = {"namespace": "default"}
    answer = api.put(one, config_map(meta=meta)) if verb == "put" else api.patch(one, {"metadata": meta})
    assert refusal(answer) == (
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )


def test_replacing_needs_a_name(api: KubeApi, one: str) -> None:
    assert refusal(api.put(one, {"apiVersion": "v1", "kind": "ConfigMap"})) == (
        400,
        "BadRequest",
        "the name of the object (one based on URL) was undeterminable: name must be provided",
    )


@pytest.mark.parametrize("meta", [{}, {"resourceVersion": "1"}, {"uid": "1"}])
def test_replacing_does_not_create(api: KubeApi, config_maps: str, meta: dict[str, Any]) -> None:
    answer = api.put(f"{config_maps}/missing", config_map("missing", meta))
    assert refusal(answer) == (404, "NotFound", 'configmaps "missing" not found')


RULES = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
RBAC = "rbac.authorization.k8s.io/v1"
CREATED: list[tuple[str, str, str, dict[str, Any]]] = [
    (RBAC, "Role", "roles", {"rules": RULES}),
    (RBAC, "RoleBinding", "rolebindings", {"roleRef": ROLE}),
    (RBAC, "ClusterRole", "clusterroles", {"rules": RULES}),
    (RBAC, "ClusterRoleBinding", "clusterrolebindings", {"roleRef": ROLE}),
    ("coordination.k8s.io/v1", "Lease", "leases", {"spec": {"leaseDurationSeconds": 3}}),
    ("v1", "LimitRange", "limitranges", {"spec": {"limits": []}}),
    ("v1", "Service", "services", {"spec": {"ports": [{"port": 80}]}}),
    ("v1", "Endpoints", "endpoints", {}),
    ("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", {"handler": "h"}),
]
CLUSTER = {"clusterroles", "clusterrolebindings", "runtimeclasses"}


def collection(api_version: str, plural: str, namespace: str) -> str:
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{prefix}/{plural}" if plural in CLUSTER else f"{prefix}/namespaces/{namespace}/{plural}"


@pytest.mark.parametrize(("api_version", "kind", "plural", "value"), CREATED, ids=[each[1] for each in CREATED])
def test_replacing_creates_some_kinds(
    api: KubeApi, namespace: str, api_version: str, kind: str, plural: str, value: dict[str, Any]
) -> None:
    name = f"{namespace}-made"
    path = f"{collection(api_version, plural, namespace)}/{name}"

    def wanted(**meta: str) -> dict[str, Any]:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}, **value}

    answer = api.put(path, wanted(uid="1"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message.endswith("Precondition failed: UID in precondition: 1, UID in object meta: ")
    assert api.put(path, wanted(), dryRun="All").status == 201
    assert api.get(path).status == 404
    answer = api.put(path, wanted(resourceVersion="7"), fieldManager="me")
    assert (answer.status, answer.json["metadata"]["name"]) == (201, name), answer.body
    entries = answer.json["metadata"].get("managedFields", [])
    assert {(entry["manager"], entry["operation"]) for entry in entries} <= {("me", "Update")}
    assert api.put(path, answer.json).status == 200
    assert api.delete(path).status == 200


@pytest.mark.parametrize("api_version", ["v1", "events.k8s.io/v1"])
def test_replacing_creates_events(api: KubeApi, namespace: str, api_version: str) -> None:
    event: dict[str, Any] = {"apiVersion": api_version, "kind": "Event", "metadata": {"name": "e"}}
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    if api_version == "v1":
        event |= {"involvedObject": about, "type": "Normal", "reason": "R"}
    else:
        event |= {
            "regarding": about, "type": "Normal", "reason": "R", "action": "A", "reportingController": "c.example.org",
            "reportingInstance": "i", "eventTime": "2026-01-01T00:00:00.000000Z",
        }  # fmt: skip
    path = f"{collection(api_version, 'events', namespace)}/e"
    assert api.put(path, event).status == 201
    assert api.get(path).status == 200


def test_who_replaces_what_is_missing_must_be_allowed_to_create(api: KubeApi, namespace: str) -> None:
    name = f"{namespace}-updater"
    api.made(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {
            "apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"]}],
        },
    )  # fmt: skip
    api.made(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {**ROLE, "name": name}, "subjects": [{"kind": "User", "name": name}],
        },
    )  # fmt: skip
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/l"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}

    def denied() -> tuple[int, str, str]:
        return refusal(api.with_headers(Impersonate_User=name).put(path, lease))

    message = (
        f'leases.coordination.k8s.io "l" is forbidden: User "{name}" cannot create resource "leases" in API group '
        f'"coordination.k8s.io" in the namespace "{namespace}"'
    )
    assert eventually(lambda: denied() if "cannot create" in denied()[2] else None) == (403, "Forbidden", message)


def test_a_new_object_by_a_replacement_needs_its_namespace(api: KubeApi) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    answer = api.put("/apis/coordination.k8s.io/v1/namespaces/there-is-none/leases/l", lease)
    assert refusal(answer) == (404, "NotFound", 'namespaces "there-is-none" not found')


@pytest.mark.parametrize("version", [None, "", "0", "1"])
def test_replacing_needs_the_version_of_some_kinds(api: KubeApi, things: str, version: str | None) -> None:
    meta = {} if version is None else {"resourceVersion": version}
    missing = api.put(f"{things}/one", thing(meta=meta))
    assert refusal(missing) == (404, "NotFound", 'things.conf.example.org "one" not found')
    api.made(things, thing())
    answer = api.put(f"{things}/one", thing(meta=meta))
    if version == "1":
        assert (answer.status, answer.reason) == (409, "Conflict")
    else:
        why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        assert refusal(answer) == (422, "Invalid", f'things.conf.example.org "one" is invalid: {why}')


def test_what_only_the_server_sets(api: KubeApi, one: str) -> None:
    before = api.get(one).json["metadata"]
    given = {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    after = api.put(one, config_map(meta=given, data={"x": "y"})).json["metadata"]
    assert after["creationTimestamp"] == before["creationTimestamp"]
    assert not {"generation", "selfLink"} & set(after)


def test_objects_are_not_deleted_by_a_write(api: KubeApi, one: str) -> None:
    answer = api.patch(one, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.deletionTimestamp")
    assert "field is immutable" in answer.message


def test_a_status_is_written_apart(api: KubeApi) -> None:
    path = "/api/v1/nodes/conformance-status"
    api.delete(path)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "conformance-status"}}
    api.made("/api/v1/nodes", node)
    try:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        after = api.patch(f"{path}/status", {"status": ready, "spec": {"unschedulable": True}}, STRATEGIC).json
        assert after["status"]["conditions"][0]["type"] == "Ready"
        assert "unschedulable" not in after["spec"]
        after = api.patch(path, {"status": {"phase": "Lost"}, "spec": {"unschedulable": True}}, STRATEGIC).json
        assert "phase" not in after["status"]
        assert after["spec"]["unschedulable"] is True
        assert api.get(f"{path}/status").json["spec"] == after["spec"]
    finally:
        api.delete(path)


@pytest.mark.parametrize("field", ["data", "binaryData"])
def test_immutable_data_stays(api: KubeApi, config_maps: str, field: str) -> None:
    api.made(config_maps, config_map("fixed", immutable=True, data={"a": "1"}, binaryData={"b": "MQ=="}))
    answer = api.patch(f"{config_maps}/fixed", {field: {"c": "MQ=="}})
    why = "Forbidden: field is immutable when `immutable` is set"
    assert refusal(answer) == (422, "Invalid", f'ConfigMap "fixed" is invalid: {field}: {why}')
    assert api.patch(f"{config_maps}/fixed", {"metadata": {"labels": {"a": "b"}}}).status == 200


def test_immutable_stays_immutable(api: KubeApi, config_maps: str) -> None:
    api.made(config_maps, config_map("fixed", immutable=True))
    why = "Forbidden: field is immutable when `immutable` is set"
    for value in (False, None):
        answer = api.patch(f"{config_maps}/fixed", {"immutable": value})
        assert refusal(answer) == (422, "Invalid", f'ConfigMap "fixed" is invalid: immutable: {why}')


def test_immutable_secrets_stay(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    api.made(path, value | {"immutable": True})
    answer = api.patch(f"{path}/s", {"stringData": {"a": "c"}})
    why = "Forbidden: field is immutable when `immutable` is set"
    assert refusal(answer) == (422, "Invalid", f'Secret "s" is invalid: data: {why}')


def test_the_type_of_a_secret_stays(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    api.made(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert refusal(api.patch(f"{path}/s", {"type": "other"})) == (
        422,
        "Invalid",
        'Secret "s" is invalid: type: Invalid value: "other": field is immutable',
    )


META: dict[str, Any] = {"labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["e.org/x"]}
PODS = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.mark.parametrize(
    ("kind", "spec", "written"),
    [
        ("Namespace", {}, {"labels", "annotations", "finalizers"}),
        ("Node", {}, {"labels", "annotations", "finalizers"}),
        ("ResourceQuota", {}, {"labels", "annotations", "finalizers"}),
        ("PersistentVolume", {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                              "hostPath": {"path": "/x"}}, {"labels", "annotations", "finalizers"}),
        ("Deployment", {"selector": {"matchLabels": {"a": "b"}}, "template": PODS}, {"annotations", "finalizers"}),
        ("DaemonSet", {"selector": {"matchLabels": {"a": "b"}}, "template": PODS},
         {"labels", "annotations", "finalizers"}),
        ("PodDisruptionBudget", {}, {"labels", "annotations", "finalizers"}),
        ("VolumeAttachment", {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}, set()),
        ("Thing", {}, set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["put", "patch", "apply"])
def test_metadata_written_with_the_status(
    api: KubeApi, things: str, namespace: str, kind: str, spec: dict[str, Any], written: set[str], how: str
) -> None:
    groups = {
        "Deployment": "apps/v1", "DaemonSet": "apps/v1", "PodDisruptionBudget": "policy/v1",
        "VolumeAttachment": "storage.k8s.io/v1", "Thing": "conf.example.org/v1",
    }  # fmt: skip
    version, plural = groups.get(kind, "v1"), f"{kind.lower()}s"
    inside = kind in {"ResourceQuota", "Deployment", "DaemonSet", "PodDisruptionBudget", "Thing"}
    base = f"/{'apis' if '/' in version else 'api'}/{version}"
    path = f"{base}/namespaces/{namespace}/{plural}" if inside else f"{base}/{plural}"
    name = f"{namespace}-status"
    value = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
    made = api.made(path, value)
    place = f"{path}/{name}"
    meta = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **META}}
    if how == "put":
        answer = api.put(f"{place}/status", {**made, "metadata": {**made["metadata"], **META}}, fieldManager="me")
    elif how == "patch":
        answer = api.patch(f"{place}/status", {"metadata": META}, fieldManager="me")
    else:
        answer = api.apply(f"{place}/status", meta, manager="me")
    assert answer.status == 200, answer.body
    found = answer.json["metadata"]
    # the server's own labels and finalizers may be there as well
    assert {key for key, given in META.items() if key in found and {*given} <= {*found[key]}} == written
    if "managedFields" in found:  # an object that said nothing when it was made has no record
        own = [one for one in found["managedFields"] if one["manager"] == "me"]
        assert {one["subresource"] for one in own} <= {"status"}
        assert {field[2:] for one in own for field in one["fieldsV1"].get("f:metadata", {}) if field != "."} == written
    api.patch(place, {"metadata": {"finalizers": None}})
    api.delete(place)


def test_conditions_of_a_definition_have_no_rules(api: KubeApi, things_served: KubeApi) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.conf.example.org/status"
    conditions = api.get(path).json["status"]["conditions"]
    answer = api.patch(path, {"status": {"conditions": [*conditions, {"message": "m"}]}})
    assert (answer.status, answer.json["status"]["conditions"][-1]["message"]) == (200, "m"), answer.body
    assert api.patch(path, {"status": {"conditions": conditions}}).status == 200
